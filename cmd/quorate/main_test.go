package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorate/quorate/embed/quoratetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command runs one command line to its end.
func command(t *testing.T, words ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), append([]string{"quorate"}, words...), &out, &err)
	return code, out.String(), err.String()
}

func TestExitStatusAndMessages(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := file("bad.conf", "listenPort=http\n")
	odd := file("odd.conf", "flushDiskTyp=SYNC_FLUSH\nsendMessageThreadPoolNums=4\n")
	good := file("good.conf", "flushDiskType=SYNC_FLUSH\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := strings.Cut(l.Addr().String(), ":")
	for _, c := range []struct {
		words  string
		code   int
		stdout string
		stderr string
	}{
		{"version", exitOK, "quorate ", ""},
		{"standalon", exitUsage, "", `unknown command "standalon"; did you mean standalone?`},
		{"topic lst", exitUsage, "", `unknown command "lst" for quorate topic`},
		{"topic ls --nope", exitUsage, "", "unknown flag: --nope"},
		{"topic create", exitUsage, "", "usage: quorate topic create TOPIC"},
		{"standalone --nodes 3", exitUsage, "", "replication, which is not built yet"},
		{"standalone --memory --set listenPort", exitUsage, "", `"listenPort" is not key=value`},
		{"standalone --memory --set maxMessageSize=big", exitUsage, "", `--set: maxMessageSize: "big" is not a whole number`},
		{"standalone --memory --namesrv-port " + taken, exitFailed, "", "take other ports with --namesrv-port"},
		{"broker -c " + bad, exitUsage, "", `listenPort: "http" is not a whole number between 0 and 65535`},
		{"broker -c " + filepath.Join(dir, "none"), exitUsage, "", "no such file"},
		{"broker --enable-proxy", exitUsage, "", "not built yet"},
		{"broker -p -c " + good, exitOK, "flushDiskType=SYNC_FLUSH\n", ""},
		{"broker -m -c " + good, exitOK, "brokerName=", ""},
		{"broker -m listenPort=12345", exitOK, "listenPort=12345\n", ""},
		{"namesrv -p --set listenPort=19876", exitOK, "listenPort=19876\n", ""},
		{"config lint " + good, exitOK, "survives kill -9", ""},
		{"config lint " + odd, exitFailed, `unknown key "flushDiskTyp"; did you mean "flushDiskType"?`, ""},
		{"config lint " + odd, exitFailed, "sendMessageThreadPoolNums has no effect", ""},
		{"config lint " + bad, exitUsage, "", "listenPort"},
		{"config explain fileReservedTime", exitOK, "fileReservedTime (broker): takes", ""},
		{"config explain transientStorePoolEnable", exitOK, "has no effect: segments are read", ""},
		{"config explain nonsense", exitUsage, "", `unknown key "nonsense"`},
		{"errors 17", exitOK, "TOPIC_NOT_EXIST", ""},
		{"errors 4711", exitUsage, "", "4711"},
		{"admin", exitOK, "clusterList", ""},
		{"admin help updateTopic", exitOK, "--readQueueNums", ""},
		{"admin updateTopic -t T", exitUsage, "", "missing: one of -b"},
		{"admin createUser", exitUsage, "", "not built yet"},
		{"admin nope", exitUsage, "", `no command "nope"`},
		{"topic ls -n 127.0.0.1:1", exitFailed, "", "(NameServer 127.0.0.1:1 (from -n))"},
		{"msg send T x -p broken", exitUsage, "", "not key=value"},
	} {
		code, stdout, stderr := command(t, strings.Fields(c.words)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("quorate %s: exit %d, want %d\nstdout: %s\nstderr: %s", c.words, code, c.code, stdout, stderr)
		}
	}
}

func TestScriptNamesPickTheirRole(t *testing.T) {
	for name, c := range map[string]struct{ words, want string }{
		"mqadmin":   {"help", "clusterList"},
		"mqbroker":  {"-m", "brokerName="},
		"mqnamesrv": {"-m", "listenPort=9876"},
	} {
		var out, err bytes.Buffer
		if code := run(t.Context(), append([]string{"/opt/bin/" + name}, strings.Fields(c.words)...), &out, &err); code != exitOK || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s %s: exit %d, %s%s", name, c.words, code, &out, &err)
		}
	}
}

// lockedBuffer is read while a command still writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

var readyLine = regexp.MustCompile(`(?m)^Ready in [0-9.]+ s\.`)

func TestStandaloneSaysReadyWhenAClientSucceeds(t *testing.T) {
	dir, err := os.MkdirTemp(t.TempDir(), "data") //nolint:usetesting // the name of the test's own has the word in it that is looked for
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := &lockedBuffer{}, &lockedBuffer{}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"quorate", "standalone", "--data", filepath.Base(dir), "--namesrv-port", "0", "--broker-port", "0"}, out, errs)
	}()
	for deadline := time.Now().Add(20 * time.Second); !readyLine.MatchString(out.String()); {
		if time.Now().After(deadline) {
			t.Fatalf("never ready\n%s%s", out, errs)
		}
		select {
		case code := <-done:
			t.Fatalf("exit %d\n%s%s", code, out, errs)
		case <-time.After(5 * time.Millisecond):
		}
	}
	before, _, _ := strings.Cut(out.String(), "Ready in")
	if strings.Contains(strings.ToLower(before+errs.String()), "ready") {
		t.Errorf("the word ready comes earlier:\n%s%s", before, errs)
	}
	addr := regexp.MustCompile(`namesrv (\S+)`).FindStringSubmatch(out.String())[1]
	if code, stdout, stderr := command(t, "msg", "send", "hello", "first", "-n", addr); code != exitOK || !strings.Contains(stdout, "SEND_OK") || !strings.Contains(stdout, "durability local") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	cancel()
	if code := <-done; code != exitOK || !strings.Contains(out.String(), "stopped cleanly") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestCommandsOfAdministration walks through the nouns against a running broker.
func TestCommandsOfAdministration(t *testing.T) {
	n := quoratetest.Start(t)
	t.Setenv(namesrvEnvironment, n.NameServers()[0])
	broker := n.Brokers()[0]
	for _, c := range []struct{ words, want string }{
		{"topic create orders -q 3", "created topic orders"},
		{"topic ls", "orders"},
		{"topic show orders", "broker-a"},
		{"topic route orders -o json", `"address": "` + broker},
		{"msg send orders one -k k1 -t A", "SEND_OK"},
		{"msg tail orders --from start --follow=false", "one"},
		{"msg query orders -k k1", "broker-a"},
		{"topic status orders", "MAX OFFSET"},
		{"topic perm orders r", "R, was RW"},
		{"topic update orders --perm rw -q 4", "4 read and 4 write"},
		{"topic groups orders", "GROUP"},
		{"group create readers --retry-max 3", "created group readers"},
		{"group update readers --orderly", "updated group readers"},
		{"group config readers", "3"},
		{"group ls", "readers"},
		{"cluster ls", "DefaultCluster"},
		{"node ls", broker},
		{"node status broker-a", "brokerVersionDesc"},
		{"node config get broker-a flushDiskType", "flushDiskType=ASYNC_FLUSH"},
		{"node config set broker-a shortPollingTimeMills=900", "shortPollingTimeMills=900"},
		{"node drain broker-a", "topics of broker-a changed"},
		{"node drain broker-a --undo", "topics of broker-a changed"},
		{"node clean broker-a queues", "cleaned queues"},
		{"kv set ns k v", ""},
		{"kv get ns k", "v"},
		{"kv get ns", "v"},
		{"kv delete ns k", ""},
		{"doctor -t orders", "4 queues to read and 4 to write"},
		{"admin clusterList", "#Cluster Name"},
		{"admin clusterList -m", "#InTotalYest"},
		{"admin topicList", "orders"},
		{"admin topicList -c", "#Consumer Group"},
		{"admin updateTopic -c DefaultCluster -t fromjava -r 2 -w 2", "create topic to " + broker + " success."},
		{"admin topicRoute -topic fromjava", `"brokerName":"broker-a"`},
		{"admin topicRoute -t fromjava -l", "#ReadQueue"},
		{"admin topicStatus -t orders", "#Max Offset"},
		{"admin topicClusterList -t orders", "DefaultCluster"},
		{"admin updateTopicPerm -t fromjava -c DefaultCluster -p 4", "update topic perm from 6 to 4"},
		{"admin updateSubGroup -c DefaultCluster -g javagroup", "create subscription group to " + broker},
		{"admin getConsumerConfig -g javagroup", "retryMaxTimes"},
		{"admin consumerProgress", "#Diff Total"},
		{"admin sendMessage -t orders -p body -k kk -b broker-a -i 0", "SEND_OK"},
		{"admin queryMsgByKey -t orders -k kk", "#Message ID"},
		{"admin printMsg -t orders", "minOffset="},
		{"admin consumeMessage -t orders", "Consume ok"},
		{"admin queryCq -t orders -q 0 -i 0", "Queue data"},
		{"admin brokerStatus -b " + broker, "bootTimestamp"},
		{"admin getBrokerConfig -b " + broker, "flushDiskType"},
		{"admin updateBrokerConfig -b " + broker + " -k shortPollingTimeMills -v 800", "update broker config success, " + broker},
		{"admin brokerConsumeStats -b " + broker, "Diff Total"},
		{"admin statsAll", "#Accumulation"},
		{"admin getNamesrvConfig", "listenPort"},
		{"admin updateKvConfig -s n -k k -v v", "success"},
		{"admin deleteKvConfig -s n -k k", "success"},
		{"admin wipeWritePerm -b broker-a", "OK, "},
		{"admin addWritePerm -b broker-a", "OK, "},
		{"admin cleanExpiredCQ", "success"},
		{"admin cleanUnusedTopic", "success"},
		{"admin deleteExpiredCommitLog", "success"},
		{"admin allocateMQ -t orders -i a,b", `"result"`},
		{"admin deleteSubGroup -c DefaultCluster -g javagroup", "success."},
		{"admin deleteTopic -c DefaultCluster -t fromjava", "from NameServer success."},
		{"group delete readers --yes", "deleted group readers"},
		{"topic delete orders --yes", "deleted topic orders"},
		{"bench produce -t load -d 200ms --quiet --json -w 4", `"kind": "produce"`},
		{"bench consume -t load -d 200ms --quiet --csv", "consume"},
	} {
		code, stdout, stderr := command(t, strings.Fields(c.words)...)
		if code != exitOK || !strings.Contains(stdout, c.want) {
			t.Errorf("quorate %s: exit %d, want %q in\n%s%s", c.words, code, c.want, stdout, stderr)
		}
	}
}

func TestTryProvesWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a delayed message")
	}
	n := quoratetest.Start(t)
	code, stdout, stderr := command(t, "try", "-n", n.NameServers()[0])
	for _, want := range []string{"none missing, none twice, order per queue kept", "delayed message asked for 1 s", "committed seen, rolled back not seen", "Everything works"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Fatalf("exit %d, want %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}
