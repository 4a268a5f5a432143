package replication

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/watermark"
)

// fakeLog is a store reduced to its watermarks.
type fakeLog struct {
	appended, written, durable, confirmed watermark.Watermark
	flushes                               int
	failed                                error
}

func (l *fakeLog) Appended() *watermark.Watermark  { return &l.appended }
func (l *fakeLog) Written() *watermark.Watermark   { return &l.written }
func (l *fakeLog) Durable() *watermark.Watermark   { return &l.durable }
func (l *fakeLog) Confirmed() *watermark.Watermark { return &l.confirmed }

// append appends up to end and hands it to the operating system at once.
func (l *fakeLog) append(end int64) {
	l.appended.Advance(end)
	l.written.Advance(end)
}

func (l *fakeLog) RequestFlush()      { l.flushes++ }
func (l *fakeLog) WriteFailed() error { return l.failed }

// outcomes collects what waiters were told, by End, in order.
type outcomes struct {
	mu    sync.Mutex
	order []int64
	got   map[int64]Outcome
}

func (o *outcomes) at(end int64) Done { return &recorder{o, end} }

func (o *outcomes) ends() []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.order)
}

func (o *outcomes) of(end int64) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got[end]
}

type recorder struct {
	to  *outcomes
	end int64
}

func (r *recorder) Decided(out Outcome, _ *Group) {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	if _, twice := r.to.got[r.end]; twice {
		panic(fmt.Sprintf("wait of %d answered twice", r.end))
	}
	r.to.got[r.end] = out
	r.to.order = append(r.to.order, r.end)
}

func newOutcomes() *outcomes { return &outcomes{got: map[int64]Outcome{}} }

func authority(tb testing.TB, id int64, epoch int32) ha.Authority {
	tb.Helper()
	a, err := ha.NewAuthority(id, epoch)
	require.NoError(tb, err)
	return a
}

func newTerm(tb testing.TB, log *fakeLog, change func(*Config)) *Term {
	tb.Helper()
	cfg := Config{Authority: authority(tb, 0, 1), SyncFlush: true}
	if change != nil {
		change(&cfg)
	}
	term, err := NewTerm(cfg, log)
	require.NoError(tb, err)
	tb.Cleanup(func() { term.End(nil) })
	return term
}

func admit(tb testing.TB, term *Term) Pass {
	tb.Helper()
	p, err := term.Admit()
	require.NoError(tb, err)
	return p
}

var soon = func() time.Time { return time.Now().Add(time.Hour) }

func TestSyncFlushAnswersExactlyWhomTheFlushCovers(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, nil)
	log.append(400)
	for _, end := range []int64{300, 100, 400, 200} {
		term.Submit(Wait{Pass: admit(t, term), End: end, Flush: true, Deadline: soon()}, got.at(end))
	}
	require.Empty(t, got.ends())
	require.Zero(t, log.confirmed.Load(), "consumers see nothing that is not flushed")

	log.durable.Advance(299)
	require.Equal(t, []int64{100, 200}, got.ends(), "in the order of the log, and nobody beyond the flush")
	require.Equal(t, int64(299), log.confirmed.Load())
	log.durable.Advance(400)
	require.Equal(t, []int64{100, 200, 300, 400}, got.ends())
	for end, o := range got.got {
		require.NoError(t, o.Err)
		require.True(t, o.Acknowledged(end))
		require.False(t, o.Acknowledged(end+1), "an acknowledgement never covers more than was asked")
		require.Equal(t, Proved{Durability: ha.Local, DurableReplicas: 1, ReceivedReplicas: 1, Epoch: 1}, o.Proved)
	}
}

func TestAnAppendAlreadyFlushedIsAnsweredInTheCallersGoroutine(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, nil)
	log.append(100)
	log.durable.Advance(100)
	term.Submit(Wait{Pass: admit(t, term), End: 100, Flush: true, Deadline: soon()}, got.at(100))
	require.Equal(t, []int64{100}, got.ends())
}

func TestAsyncFlushAcknowledgesInMemoryAndSaysSo(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, func(c *Config) { c.SyncFlush = false })
	log.append(100)
	require.Equal(t, int64(100), log.confirmed.Load(), "the rule that acknowledges is the rule that shows")
	term.Submit(Wait{Pass: admit(t, term), End: 100, Deadline: soon()}, got.at(100))
	o := got.of(100)
	require.True(t, o.Acknowledged(100))
	require.Equal(t, ha.Memory, o.Ack().Durability())
	require.Equal(t, Proved{Durability: ha.Memory, ReceivedReplicas: 1, Epoch: 1}, o.Proved)
}

func TestAnAnswerInMemoryComesOnceTheOperatingSystemHasTheRecord(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, func(c *Config) { c.SyncFlush = false })
	log.appended.Advance(100)
	term.Submit(Wait{Pass: admit(t, term), End: 100, Deadline: soon()}, got.at(100))
	require.Empty(t, got.ends(), "a kill of the process would lose it")
	require.Zero(t, log.confirmed.Load())
	log.written.Advance(100)
	require.True(t, got.of(100).Acknowledged(100))
	require.Equal(t, int64(100), log.confirmed.Load())
}

func TestAWriteThatDoesNotWaitIsMemoryEvenUnderSyncFlush(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, nil)
	log.append(100)
	term.Submit(Wait{Pass: admit(t, term), End: 100, Deadline: soon()}, got.at(100))
	require.Equal(t, ha.Memory, got.of(100).Proved.Durability)
	require.Zero(t, log.confirmed.Load())
}

func TestFlushTimeoutAnswersAtTheDeadlineAndOnlyThose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, got := &fakeLog{}, newOutcomes()
		term := newTerm(t, log, nil)
		log.append(300)
		start := time.Now()
		for end, after := range map[int64]time.Duration{100: 5 * time.Second, 200: 7 * time.Second, 300: 6 * time.Second} {
			term.Submit(Wait{Pass: admit(t, term), End: end, Flush: true, Deadline: start.Add(after)}, got.at(end))
		}
		time.Sleep(5*time.Second - time.Millisecond)
		synctest.Wait()
		require.Empty(t, got.ends())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int64{100}, got.ends())
		require.ErrorIs(t, got.of(100).Err, ErrFlushTimeout)
		require.Nil(t, got.of(100).Ack())
		require.Equal(t, Proved{Durability: ha.Memory, ReceivedReplicas: 1, Epoch: 1}, got.of(100).Proved)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int64{100, 300}, got.ends())
		log.durable.Advance(300)
		require.Equal(t, []int64{100, 300, 200}, got.ends())
		require.NoError(t, got.of(200).Err)
	})
}

func TestEndFencesEveryWaiterAndLaterOnes(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, nil)
	pass := admit(t, term)
	log.append(300)
	term.Submit(Wait{Pass: pass, End: 100, Flush: true, Deadline: soon()}, got.at(100))
	cause := errors.New("disk on fire")
	term.End(cause)
	term.End(errors.New("later"))
	require.ErrorIs(t, got.of(100).Err, ErrFenced)
	require.ErrorIs(t, got.of(100).Err, cause)
	term.Submit(Wait{Pass: pass, End: 200, Flush: true, Deadline: soon()}, got.at(200))
	require.ErrorIs(t, got.of(200).Err, cause)
	log.durable.Advance(300)
	require.Zero(t, log.confirmed.Load(), "a term that is over shows nothing new")
	require.ErrorIs(t, term.Writable(), cause)
	require.ErrorIs(t, term.Valid(pass), ErrFenced)
}

func TestRunEndsTheTermWhenTheLogFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, got := &fakeLog{}, newOutcomes()
		term := newTerm(t, log, nil)
		done := make(chan error, 1)
		go func() { done <- term.Run(context.Background()) }()
		log.append(100)
		term.Submit(Wait{Pass: admit(t, term), End: 100, Flush: true, Deadline: soon()}, got.at(100))
		eio := errors.New("fdatasync: input/output error")
		log.durable.Close(eio)
		require.ErrorIs(t, <-done, eio)
		require.ErrorIs(t, got.of(100).Err, eio)
	})
}

func TestExpiredLeaseNeverAcknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, got := &fakeLog{}, newOutcomes()
		epoch := time.Now()
		clock := func() time.Duration { return time.Since(epoch) }
		term := newTerm(t, log, func(c *Config) { c.Lease, c.Clock = true, clock })
		_, err := term.Admit()
		require.ErrorIs(t, err, ErrLeaseExpired, "a lease begins expired")

		term.Extend(8 * time.Second)
		pass := admit(t, term)
		log.append(100)
		term.Submit(Wait{Pass: pass, End: 100, Flush: true, Deadline: soon()}, got.at(100))
		time.Sleep(4 * time.Second)
		term.Extend(12 * time.Second) // a renewal never kills an append in flight
		require.NoError(t, term.Valid(pass))
		log.durable.Advance(100)
		require.NoError(t, got.of(100).Err)

		log.append(200)
		term.Submit(Wait{Pass: pass, End: 200, Flush: true, Deadline: soon()}, got.at(200))
		time.Sleep(8 * time.Second) // exactly the deadline: over
		log.durable.Advance(200)
		require.ErrorIs(t, got.of(200).Err, ErrLeaseExpired)
		require.Equal(t, int64(100), log.confirmed.Load(), "without a lease the confirm point stands still")

		term.Extend(30 * time.Second)
		require.ErrorIs(t, term.Valid(pass), ErrFenced, "what was admitted before an expiry stays fenced")
		admit(t, term)
	})
}

func replicated(copies int, durable bool) func(*Config) {
	return func(c *Config) {
		c.Sync, c.Durable = true, durable
		c.Quorum = ha.QuorumPolicy{InSyncReplicas: copies, MaxGapNotInSync: math.MaxInt64}
	}
}

// HA.md §10, behaviour 82.
func TestAWriteThatNeedsFewerReplicasIsNotHeldByOneThatNeedsMore(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, replicated(3, false))
	log.append(200)
	log.durable.Advance(200)
	three, err := term.Need()
	require.NoError(t, err)
	require.Equal(t, 3, three.Copies)
	term.Submit(Wait{Pass: admit(t, term), End: 100, Flush: true, Need: three, Deadline: soon()}, got.at(100))
	term.SetQuorum(ha.QuorumPolicy{InSyncReplicas: 2})
	two, err := term.Need()
	require.NoError(t, err)
	term.Submit(Wait{Pass: admit(t, term), End: 200, Flush: true, Need: two, Deadline: soon()}, got.at(200))
	require.NoError(t, term.Report(7, 200, 0))
	require.Equal(t, []int64{200}, got.ends())
	require.Equal(t, Proved{Durability: ha.Local, DurableReplicas: 1, ReceivedReplicas: 2, Epoch: 1}, got.of(200).Proved,
		"with received acks the durability is what the master alone proved")
	require.NoError(t, term.Report(8, 100, 0))
	require.Equal(t, []int64{200, 100}, got.ends())
}

func TestDurableReplicasCountByTheirFsync(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, replicated(2, true))
	log.append(100)
	log.durable.Advance(100)
	need, err := term.Need()
	require.NoError(t, err)
	term.Submit(Wait{Pass: admit(t, term), End: 100, Flush: true, Need: need, Deadline: soon()}, got.at(100))
	require.NoError(t, term.Report(7, 100, 99))
	require.Empty(t, got.ends())
	require.Equal(t, int64(99), log.confirmed.Load())
	require.NoError(t, term.Report(7, 100, 100))
	require.Equal(t, Proved{Durability: ha.Replicated, DurableReplicas: 2, ReceivedReplicas: 2, Epoch: 1}, got.of(100).Proved)
	require.Equal(t, int64(100), log.confirmed.Load())
}

func TestReplicaTimeoutComesAtItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, got := &fakeLog{}, newOutcomes()
		term := newTerm(t, log, replicated(2, false))
		log.append(200)
		log.durable.Advance(100)
		need, err := term.Need()
		require.NoError(t, err)
		start := time.Now()
		for _, end := range []int64{100, 200} {
			term.Submit(Wait{
				Pass: admit(t, term), End: end, Flush: true, Need: need,
				Deadline: start.Add(5 * time.Second), Replicas: start.Add(3 * time.Second),
			}, got.at(end))
		}
		require.NoError(t, term.Report(7, 100, 0))
		require.Equal(t, []int64{100}, got.ends())
		require.NoError(t, term.Report(7, 200, 0)) // replicas are in time, the flush is not
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, []int64{100}, got.ends())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, got.of(200).Err, ErrFlushTimeout)
		require.Equal(t, 2, got.of(200).Proved.ReceivedReplicas)

		log.append(300)
		log.durable.Advance(300)
		term.Submit(Wait{
			Pass: admit(t, term), End: 300, Flush: true, Need: need,
			Deadline: time.Now().Add(5 * time.Second), Replicas: time.Now().Add(3 * time.Second),
		}, got.at(300))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, got.of(300).Err, ErrReplicaTimeout)
		require.Equal(t, ha.Local, got.of(300).Proved.Durability)
	})
}

func TestReportsThatProveNothingAreRefused(t *testing.T) {
	log := &fakeLog{}
	term := newTerm(t, log, replicated(2, true))
	log.append(100)
	require.ErrorIs(t, term.Report(7, 101, 0), ha.ErrInvalidOffset, "beyond what the master itself holds")
	require.ErrorIs(t, term.Report(7, 50, 51), ha.ErrInvalidOffset)
	require.ErrorIs(t, term.Report(-1, 50, 50), ha.ErrInvalidOffset)
	require.NoError(t, term.Report(7, 100, 100))
	require.NoError(t, term.Report(7, 10, 10), "a lower offset of one session is ignored")
	term.Forget(7)
	log.durable.Advance(100)
	require.Zero(t, log.confirmed.Load(), "a session that is gone proves nothing")
}

func TestOnlyMembersOfTheSyncStateSetCountInControllerMode(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	set, err := ha.NewSyncStateSet(1, 2)
	require.NoError(t, err)
	term := newTerm(t, log, func(c *Config) {
		c.Authority, c.Set, c.Sync, c.Durable = authority(t, 1, 5), set, true, true
		c.Quorum = ha.QuorumPolicy{Mode: ha.ControllerQuorum, InSyncReplicas: 2}
	})
	log.append(100)
	log.durable.Advance(100)
	need, err := term.Need()
	require.NoError(t, err)
	term.Submit(Wait{Pass: admit(t, term), End: 100, Flush: true, Need: need, Deadline: soon()}, got.at(100))
	require.NoError(t, term.Report(3, 100, 100))
	require.Empty(t, got.ends(), "broker 3 is no member")
	bigger, err := ha.NewSyncStateSet(1, 2, 3)
	require.NoError(t, err)
	require.NoError(t, term.SetSyncStateSet(bigger))
	require.Equal(t, ha.Replicated, got.of(100).Proved.Durability)
	stranger, err := ha.NewSyncStateSet(2, 3)
	require.NoError(t, err)
	require.ErrorIs(t, term.SetSyncStateSet(stranger), ha.ErrLeaderMissing)
}

func TestTooManyWaitsAreRefusedBeforeTheAppend(t *testing.T) {
	log, got := &fakeLog{}, newOutcomes()
	term := newTerm(t, log, func(c *Config) { c.WaitsMax = 2 })
	log.append(300)
	for _, end := range []int64{100, 200} {
		term.Submit(Wait{Pass: admit(t, term), End: end, Flush: true, Deadline: soon()}, got.at(end))
	}
	_, err := term.Admit()
	require.ErrorIs(t, err, ErrWaitsFull)
	log.durable.Advance(100)
	admit(t, term)
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		term := newTerm(t, log, nil)
		log.append(100)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := term.Await(ctx, Wait{Pass: admit(t, term), End: 100, Flush: true, Deadline: time.Now().Add(time.Minute)})
		require.ErrorIs(t, o.Err, context.DeadlineExceeded)
		require.Equal(t, ha.Memory, o.Proved.Durability)
		term.End(nil)
	})
}

func TestInvalidTermsCannotBeBuilt(t *testing.T) {
	_, err := NewTerm(Config{}, &fakeLog{})
	require.ErrorIs(t, err, ha.ErrInvalidMasterEpoch)
	set, err := ha.NewSyncStateSet(2)
	require.NoError(t, err)
	_, err = NewTerm(Config{Authority: authority(t, 1, 1), Set: set}, &fakeLog{})
	require.ErrorIs(t, err, ha.ErrLeaderMissing)
	_, err = NewTerm(Config{Authority: authority(t, 1, 1), Lease: true}, &fakeLog{})
	require.Error(t, err)
}

// Many writers against one flusher: everyone is answered once, and nobody before the flush covers him.
func TestConcurrentWritersAreAllAnswered(t *testing.T) {
	log := &fakeLog{}
	term := newTerm(t, log, nil)
	var end watermark.Watermark
	var mu sync.Mutex
	next := int64(0)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for log.durable.Load() < 8*500 {
			log.durable.Advance(end.Load())
		}
	}()
	for range 8 {
		wg.Go(func() {
			for range 500 {
				mu.Lock()
				next++
				mine := next
				log.append(mine)
				end.Advance(mine)
				mu.Unlock()
				pass, err := term.Admit()
				if err != nil {
					t.Error(err)
					return
				}
				o := term.Await(t.Context(), Wait{Pass: pass, End: mine, Flush: true, Deadline: soon()})
				if !o.Acknowledged(mine) || log.durable.Load() < mine {
					t.Errorf("write of %d: %v", mine, o.Err)
				}
			}
		})
	}
	wg.Wait()
	<-stop
}

type discard struct{}

func (discard) Decided(Outcome, *Group) {}

func BenchmarkSubmitAndFlush(b *testing.B) {
	for _, group := range []int{1, 64} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			log := &fakeLog{}
			term := newTerm(b, log, nil)
			deadline := soon()
			b.ReportAllocs()
			end := int64(0)
			for b.Loop() {
				for range group {
					end += 100
					log.append(end)
					pass, _ := term.Admit()
					term.Submit(Wait{Pass: pass, End: end, Flush: true, Deadline: deadline}, discard{})
				}
				log.durable.Advance(end)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*group), "ns/write")
		})
	}
}

func BenchmarkSubmitInMemory(b *testing.B) {
	log := &fakeLog{}
	term := newTerm(b, log, func(c *Config) { c.SyncFlush = false })
	deadline := soon()
	b.ReportAllocs()
	end := int64(0)
	for b.Loop() {
		end += 100
		log.append(end)
		pass, _ := term.Admit()
		term.Submit(Wait{Pass: pass, End: end, Deadline: deadline}, discard{})
	}
}
