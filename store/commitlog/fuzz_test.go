package commitlog_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/segment"
)

// Whatever stands behind good records never shortens what recovery finds before it.
func FuzzRecoverAnyBytes(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(bytes.Repeat([]byte{0xFF}, 700), true)
	f.Add(message.AppendBlank(nil, 100), false)
	m := msg("T", []byte("x"))
	f.Add(message.AppendRecord(nil, &m, 200, 0, 0), true)
	f.Fuzz(func(t *testing.T, tail []byte, powerLoss bool) {
		const size = 4096
		var log []byte
		for i := range 2 {
			m := msg("T", body(i))
			log = message.AppendRecord(log, &m, int64(len(log)), int64(i), 1)
		}
		good := int64(len(log))
		if len(tail) > 3*size {
			return
		}
		log = append(log, tail...)
		fsys := vfs.NewCrashable()
		require.NoError(t, fsys.MkdirAll("/log"))
		for at := 0; at < len(log); at += size {
			file, err := fsys.Create("/log/" + segment.Name(int64(at)))
			require.NoError(t, err)
			require.NoError(t, file.Truncate(size))
			_, err = file.WriteAt(log[at:min(at+size, len(log))], 0)
			require.NoError(t, err)
		}
		cfg := smallConfig()
		cfg.FileSize = size
		l, err := commitlog.Open(cfg, fsys, quiet)
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		records := 0
		found, err := l.Recover(commitlog.Recovery{PowerLoss: powerLoss, Durable: good}, func(int64, *message.Record) error {
			records++
			return nil
		})
		require.GreaterOrEqual(t, records, 2)
		if err != nil {
			require.ErrorIs(t, err, commitlog.ErrCorrupt)
			require.False(t, powerLoss, "after a power cut anything may follow")
			return
		}
		require.GreaterOrEqual(t, found.End, good)
		require.Equal(t, found.End, l.Appended().Load())
	})
}

// FuzzLogAgainstModel plays a list of operations on a Log and on a slice of records.
func FuzzLogAgainstModel(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 2, 0, 0, 3, 4, 0, 1, 5, 0, 6, 0, 1})
	f.Add([]byte{0, 10, 20, 30, 40, 50, 60, 70, 2, 1, 3, 7, 4, 7, 5, 0, 0, 1, 6})
	f.Add(bytes.Repeat([]byte{7, 7, 0, 7, 5, 2, 0, 1}, 6))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 60 {
			return
		}
		playModel(t, ops)
	})
}

type model struct {
	bodies  [][]byte
	at      []commitlog.Appended
	durable int // records known to be durable
}

func playModel(t *testing.T, ops []byte) {
	t.Helper()
	fsys := vfs.NewCrashable()
	rng := rand.New(rand.NewPCG(uint64(len(ops)), 7))
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	var q commitlog.QueueCounter
	var m model
	end := func(n int) int64 {
		if n == 0 {
			return 0
		}
		return m.at[n-1].End
	}
	reopen := func(r commitlog.Recovery) {
		r.Durable = end(m.durable)
		l = start(t, smallConfig(), fsys, r)
		require.GreaterOrEqual(t, len(l.records), m.durable)
		require.LessOrEqual(t, len(l.records), len(m.bodies))
		m.bodies, m.at = m.bodies[:len(l.records)], m.at[:len(l.records)]
		m.durable = len(m.bodies)
		for i, r := range l.records {
			require.Equal(t, m.bodies[i], r.Body)
		}
		q.Set(int64(len(m.bodies)))
	}
	for i, op := range ops {
		switch op % 8 {
		case 0, 7: // append
			b := bytes.Repeat([]byte{byte(i)}, int(op)*23+1)
			at := l.append(t, &q, msg("T", b))
			m.bodies, m.at = append(m.bodies, b), append(m.at, at)
		case 1: // flush
			require.NoError(t, l.Durable().Wait(context.Background(), end(len(m.at))))
			m.durable = len(m.at)
		case 2: // truncate
			n := int(op) * len(m.at) / 256
			require.NoError(t, l.TruncateTo(end(n)))
			m.bodies, m.at, m.durable = m.bodies[:n], m.at[:n], n
			q.Set(int64(n))
		case 3: // stop and start
			l.stop()
			m.durable = len(m.at)
			reopen(commitlog.Recovery{CheckCRC: true})
		case 4: // kill
			ops := fsys.Ops()
			l.stop()
			fsys = fsys.Crash(ops, func() bool { return true })
			reopen(commitlog.Recovery{})
		case 5: // power cut
			ops := fsys.Ops()
			l.stop()
			fsys = fsys.Crash(ops, func() bool { return rng.IntN(2) == 0 })
			reopen(commitlog.Recovery{PowerLoss: true})
		case 6: // read all
			for i, at := range m.at {
				v, err := l.Record(at.Begin)
				require.NoError(t, err)
				require.True(t, bytes.Contains(v.Bytes, m.bodies[i]))
				v.Release()
			}
		}
	}
	l.stop()
}

func TestRandomHistoriesMatchTheModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	histories := 60
	if testing.Short() {
		histories = 10
	}
	for range histories {
		ops := make([]byte, 40)
		for i := range ops {
			ops[i] = byte(rng.IntN(256))
		}
		playModel(t, ops)
	}
}
