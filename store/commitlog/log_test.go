package commitlog_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
)

var quiet = slog.New(slog.DiscardHandler)

func testConfig(dir string) commitlog.Config {
	cfg := commitlog.DefaultConfig()
	cfg.Dir, cfg.FileSize, cfg.MaxMessageSize = dir, 64<<10, 16<<10
	cfg.TailBytes, cfg.ZeroAhead = 64<<10, 8<<10
	cfg.Now = func() time.Time { return time.UnixMilli(1700000000000) }
	return cfg
}

func msg(topic string, body []byte) message.Message {
	return message.Message{
		Topic: topic, Body: body, Properties: message.MakeProperties(map[string]string{"TAGS": "a"}),
		BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"),
	}
}

func body(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, 20+i*37%3000) }

// started is a recovered, running log, stopped at the end of the test.
type started struct {
	*commitlog.Log
	found   commitlog.Recovered
	records []message.Record
	stop    func()
}

func start(tb testing.TB, cfg commitlog.Config, fsys vfs.FS, r commitlog.Recovery) *started {
	tb.Helper()
	l, err := commitlog.Open(cfg, fsys, quiet)
	require.NoError(tb, err)
	s := &started{Log: l}
	s.found, err = l.Recover(r, func(_ int64, record *message.Record) error {
		kept := *record
		kept.Body, kept.Topic = bytes.Clone(record.Body), bytes.Clone(record.Topic)
		kept.Properties = bytes.Clone(record.Properties)
		s.records = append(s.records, kept)
		return nil
	})
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(tb, <-done)
		require.NoError(tb, l.Close())
	})
	tb.Cleanup(s.stop)
	return s
}

func (s *started) append(tb testing.TB, q *commitlog.QueueCounter, m message.Message) commitlog.Appended {
	tb.Helper()
	at, err := s.Append(&m, nil, q)
	require.NoError(tb, err)
	s.Kick(false)
	return at
}

func TestAppendedRecordsReadBackAndSurviveARestart(t *testing.T) {
	for _, disk := range []string{"memory", "disk"} {
		for _, sync := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s sync=%t", disk, sync), func(t *testing.T) {
				fsys, dir := vfs.FS(vfs.NewCrashable()), "/log"
				if disk == "disk" {
					fsys, dir = vfs.OS(), t.TempDir()
				}
				cfg := testConfig(dir)
				cfg.SyncFlush = sync
				cfg.FlushInterval = 5 * time.Millisecond
				l := start(t, cfg, fsys, commitlog.Recovery{})
				var q commitlog.QueueCounter
				var at []commitlog.Appended
				for i := range 200 {
					at = append(at, l.append(t, &q, msg("T", body(i))))
					require.EqualValues(t, i, at[i].QueueOffset)
				}
				end := at[199].End
				require.NoError(t, l.Written().Wait(t.Context(), end))
				require.NoError(t, l.Durable().Wait(t.Context(), end))
				check := func(l *commitlog.Log) {
					for i, a := range at {
						v, err := l.Record(a.Begin)
						require.NoError(t, err)
						r, err := message.DecodeRecord(v.Bytes, true)
						require.NoError(t, err)
						require.Equal(t, body(i), r.Body)
						require.EqualValues(t, i, r.QueueOffset)
						require.Equal(t, a.Begin, r.PhysicalOffset)
						require.EqualValues(t, 1700000000000, r.StoreTimestamp)
						require.LessOrEqual(t, a.Begin%cfg.FileSize+int64(r.Size)+message.BlankSize, cfg.FileSize)
						v.Release()
					}
				}
				check(l.Log)
				l.stop()

				again := start(t, cfg, fsys, commitlog.Recovery{Durable: end, CheckCRC: true})
				require.Equal(t, end, again.found.End)
				require.Empty(t, again.found.Torn)
				require.Len(t, again.records, 200)
				check(again.Log)
				next := again.append(t, &q, msg("T", body(200)))
				at = append(at, next)
				require.NoError(t, again.Durable().Wait(t.Context(), next.End))
				check(again.Log)
			})
		}
	}
}

// A read from before the end that a start found into bytes that only memory has yet: it must not take the files' zeros.
func TestReadAcrossTheRecoveredEnd(t *testing.T) {
	fsys := vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/log"))
	cfg := commitlog.DefaultConfig()
	cfg.Dir, cfg.FileSize, cfg.MaxMessageSize, cfg.TailBytes, cfg.ZeroAhead = "/log", 64<<10, 16<<10, 64<<10, 64<<10
	open := func() *commitlog.Log {
		l, err := commitlog.Open(cfg, fsys, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		_, err = l.Recover(commitlog.Recovery{}, func(int64, *message.Record) error { return nil })
		require.NoError(t, err)
		return l
	}
	l := open()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	m := message.Message{Topic: "t", Body: []byte("before"), BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2")}
	var queue commitlog.QueueCounter
	at, err := l.Append(&m, nil, &queue)
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, l.Close())

	l = open()
	ctx, cancel = context.WithCancel(t.Context())
	go func() { done <- l.Run(ctx) }()
	tail := bytes.Repeat([]byte{7}, 100)
	require.NoError(t, l.AppendRaw(tail, at.End, nil)) // written out by nobody yet
	got := make([]byte, at.End+100)
	n, err := l.Read(got, 0)
	require.NoError(t, err)
	require.Len(t, got, n)
	require.Equal(t, tail, got[at.End:])
	require.NotZero(t, got[at.End-1]|got[at.End-7])
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, l.Close())
}
