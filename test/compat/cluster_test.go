package compat

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/javapeer"
	"github.com/quorate/quorate/test/process"
)

// peerFlag chooses what the tests of the Go client run against: the product, or the Java servers. The latter is how a
// test itself is proved: what it asserts must be what the original does.
var peerFlag = flag.String("peer", "quorate", "quorate or java: the servers under test")

var quorateBinary string

// bootTimeout bounds the start of any server; a Java broker on a busy machine of two cores takes most of it.
const bootTimeout = 90 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	rlog.SetLogLevel("error")
	dir, err := os.MkdirTemp("", "quorate-compat-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if *peerFlag == "quorate" {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if quorateBinary, err = process.Build(ctx, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// cluster is one NameServer and one broker of either product.
type cluster struct {
	nameServer string
	broker     string
	brokerName string
	store      string
	stop       func()                // SIGTERM and wait
	kill       func()                // SIGKILL
	start      func(context.Context) // again, after stop or kill, on the same ports and files
}

// startCluster starts the servers under test; they end with the test.
func startCluster(t *testing.T, set map[string]string) *cluster {
	t.Helper()
	if *peerFlag == "java" {
		return startJava(t, openJava(t, javapeer.V5), set)
	}
	return startQuorate(t, set)
}

func startQuorate(t *testing.T, set map[string]string) *cluster {
	t.Helper()
	return startQuorateOn(t, filepath.Join(t.TempDir(), "data"), set)
}

// startQuorateOn starts the product on a data folder, which may hold a store already.
func startQuorateOn(t *testing.T, data string, set map[string]string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	keys := map[string]string{"brokerName": "broker-fixture"}
	for k, v := range set {
		keys[k] = v
	}
	s, err := process.StartStandalone(ctx, process.StandaloneConfig{Binary: quorateBinary, Data: data, Set: keys})
	require.NoError(t, err)
	c := &cluster{nameServer: s.NameServer, broker: s.Broker, brokerName: keys["brokerName"], store: data}
	c.stop = func() { require.NoError(t, s.Stop(20*time.Second), s.Tail()) }
	c.kill = func() { s.Kill() }
	c.start = func(ctx context.Context) { require.NoError(t, s.Restart(ctx)) }
	t.Cleanup(func() {
		logOnFailure(t, s.Process)
		if err := s.Stop(20 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return c
}

func openJava(t *testing.T, version string) *javapeer.Peer {
	t.Helper()
	if why := javapeer.Missing(); why != "" {
		if os.Getenv("CI") != "" {
			t.Fatal("the Java peer is needed in CI: " + why)
		}
		t.Skip("SKIPPED: no Java peer: " + why)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	p, err := javapeer.Open(ctx, version)
	require.NoError(t, err)
	return p
}

func startJava(t *testing.T, peer *javapeer.Peer, set map[string]string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	ns, err := peer.StartNameServer(ctx, filepath.Join(t.TempDir(), "ns"))
	require.NoError(t, err)
	t.Cleanup(func() { endServer(t, ns) })
	return startJavaBroker(t, peer, ns.Addr, filepath.Join(t.TempDir(), "broker"), set)
}

// startJavaBroker starts a Java broker with its files under dir and waits until the NameServer knows it.
func startJavaBroker(t *testing.T, peer *javapeer.Peer, nameServer, dir string, set map[string]string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	b, err := peer.StartBroker(ctx, javapeer.BrokerConfig{Dir: dir, NameServer: nameServer, Set: set})
	require.NoError(t, err)
	c := &cluster{nameServer: nameServer, broker: b.Addr, brokerName: "broker-fixture", store: filepath.Join(dir, "store")}
	c.stop = func() { endServer(t, b) }
	c.kill = func() { b.Kill() }
	c.start = func(ctx context.Context) {
		require.NoError(t, b.Restart(ctx))
		waitRegistered(t, nameServer, c.brokerName)
	}
	t.Cleanup(func() { endServer(t, b) })
	waitRegistered(t, nameServer, c.brokerName)
	return c
}

func endServer(t *testing.T, s *javapeer.Server) {
	t.Helper()
	logOnFailure(t, s.Process)
	if err := s.Stop(30 * time.Second); err != nil {
		t.Log(err) // a Java server may wait longer for its own threads; that is not what these tests are about
	}
}

func logOnFailure(t *testing.T, p *process.Process) {
	t.Helper()
	if t.Failed() {
		t.Logf("%s printed:\n%s", p.Name(), p.Tail())
	}
}

// waitRegistered waits until the NameServer names the broker for the topic from which others are created.
func waitRegistered(t *testing.T, nameServer, brokerName string) {
	t.Helper()
	eventually(t, 40*time.Second, "broker "+brokerName+" is in the NameServer", func() bool {
		_, body, err := exchange(t.Context(), nameServer, 105, map[string]string{"topic": "TBW102"}, nil)
		return err == nil && strings.Contains(string(body), brokerName)
	})
}

// eventually polls until ok, for the sentence what.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			require.FailNow(t, "never true: "+what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
