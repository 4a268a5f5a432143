package write_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/replication"
	"github.com/quorate/quorate/store"
)

// fakeLog is a store whose flushes are made by hand.
type fakeLog struct {
	appended, written, durable, confirmed watermark.Watermark
	failed, refuse                        error
	hook                                  func() // under the append lock, before allowed is asked
}

func (l *fakeLog) Appended() *watermark.Watermark  { return &l.appended }
func (l *fakeLog) Written() *watermark.Watermark   { return &l.written }
func (l *fakeLog) Durable() *watermark.Watermark   { return &l.durable }
func (l *fakeLog) Confirmed() *watermark.Watermark { return &l.confirmed }
func (l *fakeLog) RequestFlush()                   {}
func (l *fakeLog) WriteFailed() error              { return l.failed }

func (l *fakeLog) Append(m *message.Message, allowed func() error) (store.Appended, error) {
	if l.hook != nil {
		l.hook()
	}
	if err := allowed(); err != nil {
		return store.Appended{}, err
	}
	if l.refuse != nil {
		return store.Appended{}, l.refuse
	}
	begin := l.appended.Load()
	end := begin + int64(len(m.Body))
	l.appended.Advance(end)
	l.written.Advance(end)
	return store.Appended{Begin: begin, End: end, Count: 1}, nil
}

func (l *fakeLog) Stage(m *message.Message, allowed func() error) (store.Appended, error) {
	return l.Append(m, allowed)
}

func (l *fakeLog) Kick(bool) {}

func (l *fakeLog) AppendBatch(ms []message.Message, allowed func() error) (store.Appended, error) {
	first := store.Appended{}
	for i := range ms {
		a, err := l.Append(&ms[i], allowed)
		if err != nil {
			return store.Appended{}, err
		}
		if i == 0 {
			first = a
		}
		first.End, first.Count, first.RecordOffsets = a.End, i+1, append(first.RecordOffsets, a.Begin)
	}
	return first, nil
}

// role is a mastership that may be taken away.
type role struct {
	term *replication.Term
	err  error
}

func (r *role) Current() (*replication.Term, error) { return r.term, r.err }

func start(tb testing.TB, log *fakeLog, change func(*replication.Config)) (*write.Pipeline, *role) {
	tb.Helper()
	a, err := ha.NewAuthority(0, 1)
	require.NoError(tb, err)
	cfg := replication.Config{Authority: a, SyncFlush: true}
	if change != nil {
		change(&cfg)
	}
	term, err := replication.NewTerm(cfg, log)
	require.NoError(tb, err)
	tb.Cleanup(func() { term.End(nil) })
	r := &role{term: term}
	return write.New(write.DefaultConfig(), log, r), r
}

func one() write.Request {
	return write.Request{Message: &message.Message{Topic: "T", Body: make([]byte, 100)}, Received: time.Now()}
}

func TestAWriteIsAnsweredByTheFlushThatCoversIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		p, _ := start(t, log, nil)
		done := make(chan write.Result, 1)
		go func() { done <- p.Write(t.Context(), one()) }()
		synctest.Wait()
		require.Empty(t, done)
		log.durable.Advance(100)
		r := <-done
		require.Nil(t, r.Err)
		require.True(t, r.Stored())
		require.Equal(t, int64(100), r.Appended.End)
		require.Equal(t, ha.Local, r.Outcome.Proved.Durability)
	})
}

func TestEveryRefusalNamesItsStage(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name   string
		set    func(*fakeLog, *role)
		stage  write.Stage
		cause  error
		stored bool
	}{
		{"the log has failed", func(l *fakeLog, _ *role) { l.failed = boom }, write.Admission, boom, false},
		{"no mastership", func(_ *fakeLog, r *role) { r.term, r.err = nil, boom }, write.Authority, boom, false},
		{"the mastership is over", func(_ *fakeLog, r *role) { r.term.End(boom) }, write.Authority, boom, false},
		{"it ends while the write waits for the append lock", func(l *fakeLog, r *role) { l.hook = func() { r.term.End(boom) } }, write.Authority, boom, false},
		{"the store refuses", func(l *fakeLog, _ *role) { l.refuse = store.ErrDiskFull }, write.Append, store.ErrDiskFull, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &fakeLog{}
			p, r := start(t, log, nil)
			c.set(log, r)
			result := p.Write(t.Context(), one())
			require.NotNil(t, result.Err)
			require.Equal(t, c.stage, result.Err.Stage)
			require.ErrorIs(t, result.Err, c.cause)
			require.Equal(t, c.stored, result.Stored())
			require.Zero(t, log.appended.Load(), "not a byte was taken")
		})
	}
}

func TestFlushTimeoutComesFiveSecondsAfterTheRequestCameIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		p, _ := start(t, log, nil)
		r := one()
		time.Sleep(2 * time.Second) // in a queue, say
		before := time.Now()
		result := p.Write(t.Context(), r)
		require.Equal(t, 3*time.Second, time.Since(before))
		require.Equal(t, write.Flush, result.Err.Stage)
		require.ErrorIs(t, result.Err, replication.ErrFlushTimeout)
		require.True(t, result.Stored())
		require.Equal(t, replication.Proved{Durability: ha.Memory, ReceivedReplicas: 1, Epoch: 1}, result.Outcome.Proved)
	})
}

func TestAFailedFlushAnswersWithItsReasonAndWhatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		p, r := start(t, log, nil)
		done := make(chan write.Result, 1)
		go func() { done <- p.Write(t.Context(), one()) }()
		synctest.Wait()
		r.term.End(errors.New("fdatasync: input/output error"))
		result := <-done
		require.ErrorContains(t, result.Err, "input/output error")
		require.True(t, result.Stored())
		require.Equal(t, ha.Memory, result.Outcome.Proved.Durability)
	})
}

func TestAWriteThatNeedNotWaitDoesNot(t *testing.T) {
	log := &fakeLog{}
	p, _ := start(t, log, nil)
	r := one()
	r.NoWait = true
	result := p.Write(t.Context(), r)
	require.Nil(t, result.Err)
	require.Equal(t, ha.Memory, result.Outcome.Proved.Durability)
}

func TestACallerThatStopsWaitingStillLearnsWhereTheRecordIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		p, _ := start(t, log, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		result := p.Write(ctx, one())
		require.ErrorIs(t, result.Err, context.DeadlineExceeded)
		require.True(t, result.Stored())
		log.durable.Advance(100)
	})
}

func TestTooFewReplicasRefuseBeforeTheAppend(t *testing.T) {
	log := &fakeLog{}
	p, _ := start(t, log, func(c *replication.Config) {
		c.Sync = true
		c.Quorum = ha.QuorumPolicy{Mode: ha.ActingQuorum, InSyncReplicas: 2, MinInSync: 2, MaxGapNotInSync: 1}
	})
	result := p.Write(t.Context(), one())
	require.ErrorIs(t, result.Err, ha.ErrInSyncNotEnough)
	require.Equal(t, write.Admission, result.Err.Stage)
	require.Zero(t, log.appended.Load())
	require.NotNil(t, p.Writable())
}

func TestABatchIsOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		p, _ := start(t, log, nil)
		done := make(chan write.Result, 1)
		batch := []message.Message{{Topic: "T", Body: make([]byte, 10)}, {Topic: "T", Body: make([]byte, 20)}}
		go func() { done <- p.Write(t.Context(), write.Request{Batch: batch}) }()
		synctest.Wait()
		log.durable.Advance(29)
		synctest.Wait()
		require.Empty(t, done, "the end of the batch is what counts")
		log.durable.Advance(30)
		r := <-done
		require.Nil(t, r.Err)
		require.Equal(t, []int64{0, 10}, r.Appended.RecordOffsets)
	})
}

type discard struct{}

func (discard) Written(*write.Result, *replication.Group) {}

func BenchmarkSubmit(b *testing.B) {
	for name, sync := range map[string]bool{"sync": true, "async": false} {
		b.Run(name, func(b *testing.B) {
			log := &fakeLog{}
			p, _ := start(b, log, func(c *replication.Config) { c.SyncFlush = sync })
			m := &message.Message{Topic: "T", Body: make([]byte, 1024)}
			now := time.Now().Add(time.Hour)
			b.ReportAllocs()
			for b.Loop() {
				p.Submit(write.Request{Message: m, Received: now}, discard{})
				log.durable.Advance(log.appended.Load())
			}
		})
	}
}

func TestSubmitAllocatesNothing(t *testing.T) {
	log := &fakeLog{}
	p, _ := start(t, log, nil)
	m := &message.Message{Topic: "T", Body: make([]byte, 1024)}
	now := time.Now().Add(time.Hour)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p.Submit(write.Request{Message: m, Received: now}, discard{})
		log.durable.Advance(log.appended.Load())
	}))
}
