package compat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/test/javapeer"
	"github.com/quorate/quorate/test/process"
)

// relay passes connections on to another address and keeps the frames that pass in both directions.
type relay struct {
	to     string
	mu     sync.Mutex
	frames [][]byte
}

func startRelay(t *testing.T, listen, to string) *relay {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", listen)
	require.NoError(t, err)
	r := &relay{to: to}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(t.Context(), c)
		}
	}()
	t.Cleanup(func() { _ = l.Close() }) // ends the loop above
	return r
}

func (r *relay) pass(ctx context.Context, from net.Conn) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.to)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		defer from.Close()
		r.copy(from, to)
	}()
	r.copy(to, from)
}

func (r *relay) copy(dst io.Writer, src io.Reader) {
	in := bufio.NewReader(src)
	for {
		head, err := in.Peek(8)
		if err != nil {
			return
		}
		n, err := protocol.FrameBytes(head)
		if err != nil {
			return
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		r.mu.Lock()
		r.frames = append(r.frames, frame)
		r.mu.Unlock()
		if _, err := dst.Write(frame); err != nil {
			return
		}
	}
}

// TestCaptureBinaryHeaders writes protocol/testdata/frames/binary.bin: of what a Java NameServer, broker, client and
// mqadmin say to each other with -Drocketmq.serialize.type=ROCKETMQ, the first two frames of each code and set of
// fields. Run it with -update; it needs addresses beside 127.0.0.1 on the loopback interface.
func TestCaptureBinaryHeaders(t *testing.T) {
	if !*update {
		t.Skip("writes a fixture: run with -update")
	}
	const binaryHeader = "-Drocketmq.serialize.type=ROCKETMQ"
	peer := openJava(t, javapeer.V5)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	nsPort, err := process.FreeBrokerPort()
	require.NoError(t, err)
	brokerPort, err := process.FreeBrokerPort()
	require.NoError(t, err)
	ns, err := peer.StartNameServer(ctx, filepath.Join(t.TempDir(), "ns"), binaryHeader)
	require.NoError(t, err)
	t.Cleanup(func() { endServer(t, ns) })
	nsAddr := fmt.Sprintf("127.0.0.2:%d", nsPort)
	toNameServer := startRelay(t, nsAddr, ns.Addr)
	toBroker := startRelay(t, fmt.Sprintf("127.0.0.2:%d", brokerPort), process.Loopback(brokerPort))
	b, err := peer.StartBroker(ctx, javapeer.BrokerConfig{
		Dir: filepath.Join(t.TempDir(), "broker"), NameServer: nsAddr, Port: brokerPort, Options: []string{binaryHeader},
		Set: map[string]string{"brokerIP1": "127.0.0.2", "bindAddress": "127.0.0.1", "timerWheelEnable": "true"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { endServer(t, b) })
	waitRegistered(t, ns.Addr, "broker-fixture")
	require.NoError(t, peer.Compile(ctx, t.TempDir(), "java/Feed.java", "java/Admin.java"))
	_, err = peer.Run(ctx, t.TempDir(), "Feed", []string{binaryHeader}, "", nsAddr)
	require.NoError(t, err)
	var commands strings.Builder
	for _, line := range []string{
		"clusterList", "topicList", "topicStatus -t FixtureTopic", "queryMsgByKey -t FixtureTopic -k key-1", "printMsg -t FixtureTopic",
		"updateTopic -c DefaultCluster -t Made", "deleteTopic -c DefaultCluster -t Made", "consumerProgress -g fixture-consumer",
		"updateSubGroup -c DefaultCluster -g made", "resetOffsetByTime -g fixture-consumer -t FixtureTopic -s 0",
		"brokerStatus -c DefaultCluster", "wipeWritePerm -b broker-fixture", "addWritePerm -b broker-fixture", "statsAll -t FixtureTopic",
	} {
		commands.WriteString(strings.ReplaceAll(line+" -n "+nsAddr, " ", "\t") + "\n")
	}
	_, err = peer.Run(ctx, t.TempDir(), "Admin", []string{binaryHeader, "-Djava.security.manager=allow"}, commands.String())
	require.NoError(t, err)
	endServer(t, b)

	seen := map[string]int{}
	var out []byte
	for _, r := range []*relay{toNameServer, toBroker} {
		r.mu.Lock()
		for _, frame := range r.frames {
			kept := append([]byte(nil), frame...)
			var cmd protocol.Command
			require.NoError(t, protocol.DecodeFrame(frame[4:], &cmd))
			if cmd.Serialization != protocol.RocketMQ {
				continue
			}
			var keys []string
			for _, f := range cmd.Ext {
				keys = append(keys, string(f.Key))
			}
			sort.Strings(keys)
			kind := fmt.Sprint(cmd.Code, cmd.Flag&protocol.FlagResponse, keys)
			if seen[kind]++; seen[kind] <= 2 {
				out = append(out, kept...)
			}
		}
		r.mu.Unlock()
	}
	require.Greater(t, len(seen), 60)
	require.NoError(t, os.WriteFile("../../protocol/testdata/frames/binary.bin", out, 0o600))
}
