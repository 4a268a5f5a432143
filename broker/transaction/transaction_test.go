package transaction

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/delay"
	"github.com/quorate/quorate/broker/internal/memlog"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

type fakeProgress struct {
	mu sync.Mutex
	at map[string]int64
}

func (p *fakeProgress) Query(_, topic string, _ int32) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o, ok := p.at[topic]; ok {
		return o
	}
	return -1
}

func (p *fakeProgress) Commit(_, topic string, _ int32, offset int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[topic] = offset
	return 0
}

type fakeTopics struct{}

func (fakeTopics) Ensure(c topic.Config) (*topic.Config, error) { return &c, nil }

// producer records the checks it is asked.
type producer struct {
	mu     sync.Mutex
	checks []*protocol.CheckTransactionStateRequest
}

// asked returns the checks so far.
func (p *producer) asked() []*protocol.CheckTransactionStateRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.checks
}

func (*producer) ID() uint64                 { return 1 }
func (*producer) RemoteAddr() netip.AddrPort { return memlog.Host }
func (*producer) Close(error)                {}
func (*producer) Invoke(context.Context, *protocol.Command) (*protocol.Command, error) {
	panic("a check is oneway")
}

func (p *producer) InvokeOneway(cmd *protocol.Command) error {
	var h protocol.CheckTransactionStateRequest
	if err := protocol.DecodeHeader(cmd.Ext, &h); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks = append(p.checks, &h)
	return nil
}

func (p *producer) Producers(group string) []client.Member {
	if group != "pg" {
		return nil
	}
	return []client.Member{{Conn: p, ClientID: "c"}}
}

type rig struct {
	*testing.T
	log      *memlog.Log
	progress *fakeProgress
	producer *producer
	tx       *Transactions
	stop     func()
}

func newRig(t *testing.T) *rig {
	return (&rig{T: t, log: memlog.New(), progress: &fakeProgress{at: map[string]int64{}}, producer: &producer{}}).start()
}

func (r *rig) start() *rig {
	r.Helper()
	levels, err := delay.ParseLevels(delay.DefaultLevels)
	require.NoError(r, err)
	r.tx = New(DefaultConfig(), Deps{
		Log: r.log, Durability: r.log, Files: r.log, Writer: r.log, Progress: r.progress, Producers: r.producer, Topics: fakeTopics{},
		Levels: levels, Host: memlog.Host, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(r, r.tx.Load(ctx))
	done := make(chan error, 1)
	go func() { done <- r.tx.Run(ctx) }()
	r.stop = func() {
		cancel()
		require.NoError(r, <-done)
	}
	return r
}

// half stores a half message as package produce does.
func (r *rig) half(body string, more ...string) store.Appended {
	p := message.Properties{}.Set(message.ProducerGroup, "pg").Set(message.RealTopic, "T").Set(message.RealQueueID, "1").
		Set(message.TransactionPrepared, "true").Set(message.UniqueKey, "key-"+body)
	for i := 0; i+1 < len(more); i += 2 {
		p = p.Set(more[i], more[i+1])
	}
	return r.log.Append(&message.Message{Topic: topic.Half, Body: []byte(body), Properties: p, BornTimestamp: time.Now().UnixMilli()})
}

// end is an END_TRANSACTION about the place of a half message; the code is that of the answer, −1 for none.
func (r *rig) end(at store.Appended, want decision, fromCheck bool) protocol.ResponseCode {
	r.Helper()
	reply, err := r.tx.end(context.Background(), remoting.Call[protocol.EndTransactionRequest]{Received: time.Now(), Header: &protocol.EndTransactionRequest{
		ProducerGroup: "pg", TranStateTableOffset: at.QueueOffset, CommitLogOffset: at.Begin, CommitOrRollback: int32(want), FromTransactionCheck: &fromCheck,
	}})
	synctest.Wait()
	if e := (*protocol.Error)(nil); err != nil {
		require.ErrorAs(r, err, &e)
		return e.Code
	}
	if reply == remoting.NoReply {
		return -1
	}
	return reply.Code
}

// checked is the place that the last check named.
func (r *rig) checked() store.Appended {
	r.Helper()
	require.NotEmpty(r, r.producer.asked())
	c := r.producer.asked()[len(r.producer.asked())-1]
	return store.Appended{Begin: c.CommitLogOffset, QueueOffset: c.TranStateTableOffset}
}

func (r *rig) delivered() (out []string) {
	for _, m := range r.log.Messages("T", 1) {
		out = append(out, string(m.Body))
	}
	return out
}

func (r *rig) ops() (out string) {
	for _, m := range r.log.Messages(topic.OpHalf, 0) {
		out += string(m.Body)
	}
	return out
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestCommitDeliversAndRollbackDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		a, b, c := r.half("a"), r.half("b"), r.half("c")
		require.Equal(t, protocol.Success, r.end(a, commit, false))
		require.Equal(t, protocol.Success, r.end(b, rollback, false))
		require.Equal(t, protocol.ResponseCode(-1), r.end(c, undecided, false), "unknown gets no answer at all")
		require.Equal(t, []string{"a"}, r.delivered())
		require.Equal(t, "0,1,", r.ops())
		m := r.log.Messages("T", 1)[0]
		require.Equal(t, message.TransactionCommit, m.SysFlag.Transaction())
		require.Equal(t, a.Begin, m.PreparedTransactionOffset)
		require.Equal(t, "true", m.Properties.Get(message.TransactionPrepared), "the property string stays as stored")
		wait(30 * time.Second)
		require.Equal(t, int64(3), r.progress.Query("", topic.Half, 0), "two are decided, the third moved to the end")
	})
}

func TestEndThatFitsNoHalfMessageIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		a := r.half("a")
		other := r.log.Append(&message.Message{Topic: "T", QueueID: 1, Body: []byte("plain"), Properties: message.Properties{}.Set(message.ProducerGroup, "pg")})
		require.Equal(t, protocol.SystemError, r.end(store.Appended{Begin: 1 << 40}, commit, false), "no record there")
		require.Equal(t, protocol.SystemError, r.end(store.Appended{Begin: a.Begin, QueueOffset: 9}, commit, false), "wrong queue offset")
		require.Equal(t, protocol.SystemError, r.end(other, commit, false), "not a half message")
		reply, err := r.tx.end(context.Background(), remoting.Call[protocol.EndTransactionRequest]{Header: &protocol.EndTransactionRequest{
			ProducerGroup: "stranger", CommitLogOffset: a.Begin, CommitOrRollback: int32(commit),
		}})
		require.Nil(t, reply)
		require.ErrorContains(t, err, "producer group")
		require.Equal(t, []string{"plain"}, r.delivered())
		require.Equal(t, protocol.Success, r.end(a, commit, false), "and the right one still works")
	})
}

func TestUndecidedIsCheckedAgainAndAgainThenParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		r.half("a")
		wait(30 * time.Second)
		require.Len(t, r.producer.asked(), 1)
		first := r.producer.asked()[0]
		require.Equal(t, []any{topic.Half, "key-a", "key-a"}, []any{first.Topic, first.MsgID, first.TransactionID})
		require.Equal(t, int64(1), first.TranStateTableOffset, "it was appended again, and that place is named")
		wait(14 * 30 * time.Second)
		require.Len(t, r.producer.asked(), 15)
		require.Empty(t, r.log.Messages(topic.CheckMaxTime, 0))
		wait(30 * time.Second)
		require.Len(t, r.producer.asked(), 15, "transactionCheckMax is the number of checks")
		parked := r.log.Messages(topic.CheckMaxTime, 0)
		require.Len(t, parked, 1)
		require.Equal(t, "0", parked[0].Properties.Get(message.PreparedQueueOffset))
		wait(5 * time.Minute)
		require.Len(t, r.producer.asked(), 15)

		reply, err := r.tx.resume(t.Context(), remoting.Call[protocol.ResumeCheckHalfMessageRequest]{Header: &protocol.ResumeCheckHalfMessageRequest{
			MsgID: message.OffsetID(memlog.Host, parked[0].PhysicalOffset),
		}})
		require.NoError(t, err)
		require.Equal(t, protocol.Success, reply.Code)
		wait(time.Minute)
		require.Greater(t, len(r.producer.asked()), 15, "checks start anew")
		require.Equal(t, protocol.Success, r.end(r.checked(), commit, true))
		require.Equal(t, []string{"a"}, r.delivered())
	})
}

// An answer to a check names the place of the half message: it must not be asked for before that place can be read.
func TestCheckWaitsUntilItsHalfMessageIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		r.half("a")
		r.half("b")
		r.log.ManualFlush.Store(true)
		wait(35 * time.Second)
		require.Len(t, r.log.Messages(topic.Half, 0), 4, "both were appended again")
		require.Empty(t, r.producer.asked())
		r.log.Flush()
		synctest.Wait()
		require.Len(t, r.producer.asked(), 2)
	})
}

// CASES 125: first decisive answer wins, whoever gives it and whichever place of the message it names.
func TestFirstDecisionWinsInEveryOrder(t *testing.T) {
	type act struct {
		who  string // call: the original end; check1, check2: the answer to that check
		want decision
	}
	kinds := []decision{commit, rollback, undecided}
	orders := [][3]string{{"call", "check1", "check2"}, {"check1", "call", "check2"}, {"check1", "check2", "call"}, {"check2", "check1", "call"}, {"check2", "call", "check1"}, {"call", "check2", "check1"}}
	for n := range 27 * len(orders) {
		order, k := orders[n/27], n%27
		acts := []act{{order[0], kinds[k%3]}, {order[1], kinds[k/3%3]}, {order[2], kinds[k/9]}}
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				defer func() { r.stop() }()
				places := map[string]store.Appended{"call": r.half("m")}
				wait(31 * time.Second)
				places["check1"] = r.checked()
				wait(30 * time.Second)
				places["check2"] = r.checked()
				decided := undecided
				for _, a := range acts {
					code := r.end(places[a.who], a.want, a.who != "call")
					switch {
					case a.want == undecided:
						require.Equal(t, protocol.ResponseCode(-1), code)
					case decided == undecided:
						require.Equal(t, protocol.Success, code)
						decided = a.want
					case decided == a.want:
						require.Equal(t, protocol.Success, code, "said again")
					default:
						require.Equal(t, protocol.IllegalOperation, code, "a contrary end is refused")
					}
				}
				want := []string(nil)
				if decided == commit {
					want = []string{"m"}
				}
				require.Equal(t, want, r.delivered(), "exactly once or not at all")
				asked := len(r.producer.asked())
				wait(2 * time.Minute)
				if decided != undecided {
					require.Len(t, r.producer.asked(), asked, "no check after a decision")
					for who, at := range places {
						require.Equal(t, protocol.IllegalOperation, r.end(at, commit, false), "long after: %s", who)
					}
					require.Equal(t, want, r.delivered())
				}
				r.stop()
				r.start()
				wait(2 * time.Minute)
				if decided != undecided {
					require.Len(t, r.producer.asked(), asked, "nor after a restart")
				} else {
					require.Greater(t, len(r.producer.asked()), asked, "undecided ones are still asked about")
				}
				require.Equal(t, want, r.delivered())
			})
		})
	}
}

// CASES 124: one half message that cannot be read keeps no other from being decided, and progress is kept.
func TestUnreadableHalfMessageIsQuarantinedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		for i := range 50 {
			at := r.half(strconv.Itoa(i))
			if i == 10 {
				r.log.Lose(at.Begin)
			}
		}
		wait(30 * time.Second)
		require.Len(t, r.producer.asked(), 49)
		require.Equal(t, int64(1), r.tx.Quarantined())
		require.Equal(t, int64(50), r.progress.Query("", topic.Half, 0), "the whole round counts")
		require.Equal(t, map[string]int64{"T": 49}, r.tx.Waiting())
		wait(time.Minute)
		require.Equal(t, int64(1), r.tx.Quarantined(), "it is not looked at again")
	})
}

func TestProgressSurvivesARestartAndIsNeverAheadOfTheDurableLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.log.ManualFlush.Store(true)
		a := r.half("a")
		require.Equal(t, protocol.Success, r.end(a, commit, false))
		wait(time.Minute)
		require.Equal(t, int64(-1), r.progress.Query("", topic.Half, 0), "a power loss would undo the commit")
		r.log.Flush()
		wait(time.Minute)
		require.Equal(t, int64(1), r.progress.Query("", topic.Half, 0))
		require.Equal(t, int64(1), r.progress.Query("", topic.OpHalf, 0))
		r.stop()
		r.start()
		defer r.stop()
		r.log.Flush()
		wait(2 * time.Minute)
		require.Empty(t, r.producer.asked())
	})
}

func TestRestartBeforeProgressIsStoredKnowsDecisionsFromOpRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a, b := r.half("a"), r.half("b")
		wait(31 * time.Second) // both move: a to 2, b to 3
		require.Equal(t, protocol.Success, r.end(a, commit, false), "the old place decides too")
		r.progress.Commit("", topic.Half, 0, 0) // as after a crash with old files
		r.progress.Commit("", topic.OpHalf, 0, 0)
		old := r.stop
		r.start()
		defer func() { r.stop() }()
		asked := len(r.producer.asked())
		require.Equal(t, protocol.IllegalOperation, r.end(a, commit, false))
		require.Equal(t, protocol.Success, r.end(b, rollback, false))
		wait(2 * time.Minute)
		require.Len(t, r.producer.asked(), asked)
		require.Equal(t, []string{"a"}, r.delivered())
		old()
	})
}

func TestImmunityDelaysTheCheckAndThenClosesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		a := r.half("a", message.CheckImmunityTime, "100")
		wait(95 * time.Second)
		require.Empty(t, r.producer.asked())
		wait(30 * time.Second)
		require.Len(t, r.producer.asked(), 1)
		require.Equal(t, protocol.IllegalOperation, r.end(a, commit, false), "after its time only a check may decide")
		require.Equal(t, protocol.Success, r.end(r.checked(), commit, true))
	})
}

func TestOpRecordsAreBatchedAndBounded(t *testing.T) {
	r := &Transactions{cfg: Config{OpBytesMax: 32}, ops: make(chan int64, 100)}
	for i := range 20 {
		r.ops <- int64(1000 + i)
	}
	var all string
	records := 0
	for len(r.ops) > 0 {
		body := r.collect(<-r.ops)
		require.LessOrEqual(t, len(body), 32+20)
		all += string(body)
		records++
	}
	require.Equal(t, 3, records)
	require.Contains(t, all, "1000,1001,")
	require.Contains(t, all, "1019,")
}

func TestHalfMessageOfASilentGroupIsParkedAsRocketMQDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		r.half("a", message.ProducerGroup, "nobody")
		wait(9 * time.Minute)
		require.Empty(t, r.producer.asked())
		require.Len(t, r.log.Messages(topic.CheckMaxTime, 0), 1)
	})
}

func TestReadsTheMetricsThatRocketMQWrote(t *testing.T) {
	content, err := os.ReadFile("testdata/transactionMetrics")
	require.NoError(t, err)
	log := memlog.New()
	require.NoError(t, log.WriteConfigFile(fileName, content))
	var m metrics
	require.NoError(t, m.load(log))
	require.Equal(t, int64(0), m.d.Counts["FixtureTx"].Count)
	m.set(map[string]int64{"FixtureTx": 2}, time.UnixMilli(5))
	require.NoError(t, m.save(log))
	written, err := log.ReadConfigFile(fileName)
	require.NoError(t, err)
	require.JSONEq(t, `{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":5},"transactionCount":{"FixtureTx":{"count":2,"timeStamp":5}}}`, string(written))
}
