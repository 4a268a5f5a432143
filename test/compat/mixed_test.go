package compat

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/javapeer"
	"github.com/quorate/quorate/test/process"
)

func needsProduct(t *testing.T) {
	t.Helper()
	if *peerFlag != "quorate" {
		t.Skip("SKIPPED: this test is about the product beside the original")
	}
}

func startNameServer(t *testing.T) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	p, addr, err := process.StartNameServer(ctx, quorateBinary, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() {
		logOnFailure(t, p)
		require.NoError(t, p.Stop(20*time.Second))
	})
	return &cluster{nameServer: addr}
}

// A Java broker of either line registers with our NameServer, and unchanged clients find it there.
func TestJavaBrokerUsesOurNameServer(t *testing.T) {
	needsProduct(t)
	for _, version := range []string{javapeer.V5, javapeer.V4} {
		t.Run(version, func(t *testing.T) {
			peer := openJava(t, version)
			ns := startNameServer(t)
			dir := filepath.Join(t.TempDir(), "broker")
			c := startJavaBroker(t, peer, ns.nameServer, dir, nil)
			roundTrip(t, c)
			c.stop()
			eventually(t, 20*time.Second, "a broker that took leave is gone", func() bool {
				body, err := routeBody(t.Context(), ns.nameServer, "TBW102")
				return err != nil || !strings.Contains(body, c.broker)
			})
		})
	}
}

// Our broker registers with a Java NameServer of either line.
func TestOurBrokerUsesJavaNameServer(t *testing.T) {
	needsProduct(t)
	for _, version := range []string{javapeer.V5, javapeer.V4} {
		t.Run(version, func(t *testing.T) {
			peer := openJava(t, version)
			ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
			defer cancel()
			ns, err := peer.StartNameServer(ctx, filepath.Join(t.TempDir(), "ns"))
			require.NoError(t, err)
			t.Cleanup(func() { endServer(t, ns) })
			c := startOurBroker(t, ns.Addr, filepath.Join(t.TempDir(), "broker"), nil)
			waitRegistered(t, ns.Addr, c.brokerName)
			roundTrip(t, c)
		})
	}
}

// startOurBroker starts `quorate broker -c FILE -n ADDR` with the very configuration file a Java broker is given.
func startOurBroker(t *testing.T, nameServer, dir string, set map[string]string) *cluster {
	t.Helper()
	port, err := process.FreeBrokerPort()
	require.NoError(t, err)
	conf, err := javapeer.WriteBrokerConf(dir, nameServer, port, set)
	require.NoError(t, err)
	c := &cluster{nameServer: nameServer, broker: process.Loopback(port), brokerName: "broker-fixture", store: filepath.Join(dir, "store")}
	var p *process.Process
	c.start = func(ctx context.Context) {
		p, err = process.StartBroker(ctx, quorateBinary, conf, nameServer, c.broker)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	c.start(ctx)
	c.stop = func() { require.NoError(t, p.Stop(20*time.Second), p.Tail()) }
	c.kill = func() { p.Kill() }
	t.Cleanup(func() {
		logOnFailure(t, p)
		if err := p.Stop(20 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return c
}

// roundTrip sends and consumes through whatever NameServer and broker c names.
func roundTrip(t *testing.T, c *cluster) {
	t.Helper()
	createTopic(t, c, "RoundTrip", 2)
	var in inbox
	startConsumer(t, c, "RoundTrip", "*", collect(&in))
	p := newProducer(t, c)
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint("round-", i))
		send(t, p, newMessage("RoundTrip", want[i]))
	}
	eventually(t, 60*time.Second, "all come", func() bool { return in.len() >= len(want) })
	require.ElementsMatch(t, want, in.bodies())
}
