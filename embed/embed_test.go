package embed_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/embed"
	"github.com/quorate/quorate/embed/quoratetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect makes a client of a node.
func connect(t *testing.T, n *embed.Node) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{NameServers: n.NameServers(), Dial: n.Dial}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// send sends one message and returns what the answer says.
func send(t *testing.T, n *embed.Node, topic, body string) client.SendResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := connect(t, n).NewProducer(client.ProducerConfig{Group: "p"}).Send(ctx, &client.Message{Topic: topic, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bodies reads all messages of a topic.
func bodies(t *testing.T, n *embed.Node, topic string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := connect(t, n)
	if _, err := c.WaitForRoute(ctx, topic); err != nil { // a topic that a send made is announced soon after the answer
		t.Fatal(err)
	}
	queues, err := c.Queues(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, q := range queues {
		first, end, err := c.Bounds(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for offset := first; offset < end; {
			r, err := c.Pull(ctx, client.PullRequest{Group: "g", Queue: q, Offset: offset})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range r.Messages {
				all = append(all, string(m.Body))
			}
			offset = r.Next
		}
	}
	return all
}

func TestClientStartedAfterStartSucceedsAtOnce(t *testing.T) {
	n := quoratetest.Start(t)
	if r := send(t, n, "orders", "one"); r.Durability != "memory" {
		t.Errorf("an OK of a broker in memory proves %q", r.Durability)
	}
	if got := bodies(t, n, "orders"); len(got) != 1 || got[0] != "one" {
		t.Errorf("got %q", got)
	}
}

func TestAnyNumberOfNodesOnTheLoopback(t *testing.T) {
	cfg := embed.Config{
		Loopback: true, NameServers: []embed.NameServer{{}, {}},
		Brokers: []embed.Broker{{Name: "a", Memory: true}, {Name: "b", Memory: true}},
	}
	n, err := embed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, addr := range n.Brokers() {
		if err := adminOf(t, n).PutTopic(t.Context(), addr, admin.NewTopic("orders"), ""); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, n)
	for { // until both brokers have announced it
		if r, err := c.WaitForRoute(t.Context(), "orders"); err != nil || len(r.QueueDatas) == 2 {
			break
		}
	}
	p := c.NewProducer(client.ProducerConfig{Group: "p"})
	brokers := map[string]int{}
	for range 16 {
		r, err := p.Send(t.Context(), &client.Message{Topic: "orders", Body: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		brokers[r.Queue.BrokerName]++
	}
	if brokers["a"] == 0 || brokers["b"] == 0 {
		t.Fatalf("sends went to %v", brokers)
	}
}

func TestMessagesOutliveTheNode(t *testing.T) {
	dir := t.TempDir()
	cfg := embed.Standalone(dir)
	cfg.NameServers[0].Port, cfg.Brokers[0].Port = 0, 0
	for i, want := range []string{"first", "second"} {
		n, err := embed.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		send(t, n, "orders", want)
		got := bodies(t, n, "orders")
		for deadline := time.Now().Add(10 * time.Second); len(got) < i+1 && time.Now().Before(deadline); {
			got = bodies(t, n, "orders") // what is written is readable a moment later
		}
		if len(got) != i+1 {
			t.Errorf("start %d: %q", i, got)
		}
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedSettingsNameKeyValueAndBounds(t *testing.T) {
	for text, want := range map[string]string{
		"listenPort=70000":      `listenPort: "70000" is out of range`,
		"flushDiskType=FSYNC":   `flushDiskType: "FSYNC" is not one of ASYNC_FLUSH, SYNC_FLUSH`,
		"maxMessageSize=4MiB":   `maxMessageSize: "4MiB" is not a whole number`,
		"brokerRole=SLAVE":      "brokerRole=SLAVE",
		"autoCreateTopicEnable": "",
	} {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			continue
		}
		cfg := embed.Config{Loopback: true, Brokers: []embed.Broker{{Memory: true, Settings: map[string]string{key: value}}}}
		n, err := embed.Start(t.Context(), cfg)
		if err == nil {
			t.Errorf("%s is taken", text)
			err = n.Stop()
		}
		if !errors.Is(err, embed.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestKeysWithoutEffectAreNamedOnce(t *testing.T) {
	var log bytes.Buffer
	cfg := embed.Config{
		Loopback: true, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		NameServers: []embed.NameServer{{}},
		Brokers: []embed.Broker{{Memory: true, Settings: map[string]string{
			"sendMessageThreadPoolNums": "64", "flushDiskTyp": "SYNC_FLUSH",
		}}},
	}
	n, err := embed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Count(log.String(), "sendMessageThreadPoolNums") != 1 || !strings.Contains(log.String(), "did_you_mean=flushDiskType") {
		t.Errorf("log:\n%s", log.String())
	}
}

func TestTakenPortAndFailedStartLeaveNothingOpen(t *testing.T) {
	n := quoratetest.Start(t)
	_, port, _ := strings.Cut(n.NameServers()[0], ":")
	cfg := embed.Standalone("")
	cfg.Brokers[0].Port = 0
	cfg.NameServers[0].Settings = map[string]string{"listenPort": port}
	if _, err := embed.Start(t.Context(), cfg); err == nil {
		t.Fatal("a taken port is taken again")
	}
}

func TestOperatorsChangesReachTheConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broker.conf")
	if err := os.WriteFile(file, []byte("# mine\nautoCreateTopicEnable=true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := embed.Standalone("")
	cfg.Loopback, cfg.Brokers[0].ConfigFile = true, file
	n, err := embed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := adminOf(t, n).SetBrokerConfig(t.Context(), n.Brokers()[0], "autoCreateTopicEnable", "false"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "# mine\nautoCreateTopicEnable=false\n" {
		t.Fatalf("%q, %v", text, err)
	}
}
