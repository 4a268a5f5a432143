package bench

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// fakeBroker answers frames by a function; what it returns nil for stays unanswered.
type fakeBroker struct {
	addr     string
	requests atomic.Int64
	answer   func(*protocol.Command) *protocol.Command
}

func startFake(t *testing.T, answer func(*protocol.Command) *protocol.Command) *fakeBroker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &fakeBroker{addr: l.Addr().String(), answer: answer}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		conns.Wait()
	})
	return b
}

func (b *fakeBroker) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		head, err := r.Peek(8)
		if err != nil {
			return
		}
		n, err := protocol.FrameBytes(head)
		if err != nil {
			return
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(r, frame); err != nil {
			return
		}
		var cmd protocol.Command
		if protocol.DecodeFrame(frame[4:], &cmd) != nil {
			return
		}
		b.requests.Add(1)
		answer := b.answer(&cmd)
		if answer == nil {
			continue
		}
		answer.Opaque, answer.Flag = cmd.Opaque, protocol.FlagResponse
		if _, err := c.Write(protocol.AppendFrame(nil, answer)); err != nil {
			return
		}
	}
}

func sent(*protocol.Command) *protocol.Command {
	return &protocol.Command{Ext: protocol.ExtFields{}.Add("msgId", "x").Add("queueId", "0").Add("queueOffset", "0").Add("durability", "local")}
}

func produceConfig(addr string) ProduceConfig {
	cfg := DefaultProduceConfig()
	cfg.Brokers, cfg.Duration, cfg.Messages = []string{addr}, time.Minute, 1000
	return cfg
}

func TestProduceCountsEachAnswerOnce(t *testing.T) {
	var queues sync.Map
	b := startFake(t, func(cmd *protocol.Command) *protocol.Command {
		var h protocol.SendView
		if err := protocol.DecodeSendV2(cmd.Ext, &h); err != nil || len(cmd.Body) != 100 {
			return &protocol.Command{Code: int32(protocol.SystemError), Remark: []byte("malformed")}
		}
		queues.Store(h.QueueID, true)
		return sent(cmd)
	})
	cfg := produceConfig(b.addr)
	cfg.Connections, cfg.InFlight, cfg.BodyBytes, cfg.Keys, cfg.Tags, cfg.PropertyBytes = 3, 8, 100, true, 2, 10
	result, h, err := Produce(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Zero(t, result.Failed, result.Errors)
	require.GreaterOrEqual(t, result.Messages, int64(1000))
	require.Less(t, result.Messages, int64(1000+3*8))
	require.Equal(t, result.Messages, h.TotalCount())
	require.Equal(t, result.Messages*100, result.Bytes)
	require.Equal(t, "local", result.Durability)
	n := 0
	queues.Range(func(any, any) bool { n++; return true })
	require.Equal(t, cfg.Queues, n, "all queues are used")
}

func TestProduceNeverExceedsItsWindow(t *testing.T) {
	var inFlight, most atomic.Int64
	var mu sync.Mutex
	var held int
	b := startFake(t, func(cmd *protocol.Command) *protocol.Command {
		most.Store(max(most.Load(), inFlight.Add(1)))
		mu.Lock()
		defer mu.Unlock()
		if held++; held <= 5 {
			return nil // never answered: the window shrinks by five for good
		}
		inFlight.Add(-1)
		return sent(cmd)
	})
	cfg := produceConfig(b.addr)
	cfg.InFlight = 6
	result, _, err := Produce(t.Context(), cfg, nil)
	require.ErrorContains(t, err, "unanswered")
	require.Positive(t, result.Messages, "one of six is left to send with")
	require.Equal(t, int64(6), most.Load())
}

func TestProduceReportsRefusalsByKind(t *testing.T) {
	b := startFake(t, func(*protocol.Command) *protocol.Command {
		return &protocol.Command{Code: int32(protocol.SystemBusy), Remark: []byte("[admission] busy")}
	})
	cfg := produceConfig(b.addr)
	cfg.Messages, cfg.Duration = 0, 50*time.Millisecond
	result, _, err := Produce(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Zero(t, result.Messages)
	require.Positive(t, result.Failed)
	require.Equal(t, []Failure{{Text: "code 2 [admission] busy", Count: result.Failed}}, result.Errors)
}

func TestProduceBatchesAreDecodable(t *testing.T) {
	b := startFake(t, func(cmd *protocol.Command) *protocol.Command {
		entries, err := message.DecodeBatch(cmd.Body, 100)
		if err != nil || len(entries) != 16 || cmd.Code != int32(protocol.CodeSendBatchMessage) {
			return &protocol.Command{Code: int32(protocol.SystemError), Remark: []byte("malformed")}
		}
		return sent(cmd)
	})
	cfg := produceConfig(b.addr)
	cfg.Batch = 16
	result, _, err := Produce(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Zero(t, result.Failed, result.Errors)
	require.Equal(t, result.Requests*16, result.Messages)
}

// A stall is charged to every request that was due in it, not to the one that met it.
func TestRateLimitedLatencyCountsFromWhenASendWasDue(t *testing.T) {
	const stall = 200 * time.Millisecond
	var n atomic.Int64
	b := startFake(t, func(cmd *protocol.Command) *protocol.Command {
		if n.Add(1) == 10 {
			time.Sleep(stall)
		}
		return sent(cmd)
	})
	cfg := produceConfig(b.addr)
	cfg.InFlight, cfg.Rate, cfg.Messages = 1, 500, 150
	_, h, err := Produce(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Duration(h.Max()), stall*9/10)
	late := 0
	for _, bar := range h.Distribution() {
		if time.Duration(bar.From) > stall/2 {
			late += int(bar.Count)
		}
	}
	require.Greater(t, late, 10, "about half of the hundred sends due in the stall were late by more than half of it")
}

func TestConsumeReadsEachMessageAndMeasuresTheWay(t *testing.T) {
	const total = 100
	var offset int64
	host := netip.MustParseAddrPort("127.0.0.1:10911")
	b := startFake(t, func(cmd *protocol.Command) *protocol.Command {
		from, err := strconv.ParseInt(cmd.Ext.Get("queueOffset"), 10, 64)
		if err != nil || from >= total {
			return &protocol.Command{Code: int32(protocol.PullNotFound), Ext: protocol.ExtFields{}.Add("nextBeginOffset", cmd.Ext.Get("queueOffset"))}
		}
		offset = min(from+32, total)
		body := make([]byte, 64)
		stamp(body, time.Now())
		var records []byte
		for i := from; i < offset; i++ {
			records = message.AppendRecord(records, &message.Message{Topic: "T", Body: body, BornHost: host, StoreHost: host}, i*1000, i, 1)
		}
		return &protocol.Command{Ext: protocol.ExtFields{}.Add("nextBeginOffset", strconv.FormatInt(offset, 10)), Body: records}
	})
	cfg := DefaultConsumeConfig()
	cfg.Brokers, cfg.Duration, cfg.Messages, cfg.Queues = []string{b.addr}, time.Minute, total, 1
	result, h, err := Consume(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Equal(t, int64(total), result.Messages)
	require.Equal(t, int64(4), h.TotalCount())
	require.NotNil(t, result.EndToEnd)
	require.Equal(t, int64(4+4+4+1), result.EndToEnd.Count, "every eighth message of a pull")
}

func TestBoundsAreNamed(t *testing.T) {
	cfg := DefaultProduceConfig()
	require.ErrorContains(t, cfg.Validate(), "neither a NameServer nor a broker")
	cfg.Brokers = []string{"x"}
	require.NoError(t, cfg.Validate())
	cfg.InFlight, cfg.BodyBytes, cfg.DelayLevel = 0, BodyBytesMax+1, 19
	err := cfg.Validate()
	require.ErrorContains(t, err, "in flight 0 outside 1..65536")
	require.ErrorContains(t, err, "body of 4194305 bytes outside 1..4194304")
	require.ErrorContains(t, err, "delay level 19 outside 0..18")
}

func TestReportsAgree(t *testing.T) {
	r := Result{Kind: "produce", Messages: 7, Duration: time.Second, Rate: 7, Target: &TargetUse{CPU: 1.5}}
	var text, object, table bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "7 messages in 1.00 s: 7 msg/s")
	require.NoError(t, r.WriteJSON(&object))
	var back Result
	require.NoError(t, json.Unmarshal(object.Bytes(), &back))
	require.Equal(t, r.Messages, back.Messages)
	require.NoError(t, r.WriteCSV(&table, time.Unix(0, 0), true))
	rows, err := csv.NewReader(&table).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, csvHeader, rows[0])
	require.Equal(t, "1.500", rows[1][17])
}
