package ops

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/broker/meter"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// runtimeInfo is GET_BROKER_RUNTIME_INFO. Keys and forms are those that mqadmin and dashboards read.
func (h *Handlers) runtimeInfo(context.Context, remoting.Call[protocol.GetBrokerRuntimeInfoRequest]) (*remoting.Reply, error) {
	t := map[string]string{}
	h.rates(t)
	h.storage(t)
	h.constants(t)
	for level := 1; level <= h.Self.Levels; level++ {
		next, end := h.Schedule.Progress(level)
		t["scheduleMessageOffset_"+strconv.Itoa(level)] = fmt.Sprintf("%d,%d", next, end)
	}
	return jsonReply(protocol.KVTable{Table: t})
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// decimal writes a float as Java does: never without a fraction.
func decimal(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.ContainsRune(s, '.') {
		s += ".0"
	}
	return s
}

func triple(r meter.Rates) string {
	return decimal(r[0]) + " " + decimal(r[1]) + " " + decimal(r[2])
}

func (h *Handlers) rates(t map[string]string) {
	m := h.Meter
	s := m.Speed()
	t["putTps"], t["getFoundTps"], t["getMissTps"] = triple(s.Put), triple(s.GetFound), triple(s.GetMiss)
	t["getTotalTps"], t["getTransferredTps"] = triple(s.GetTotal), triple(s.Transferred)
	t["putMessageTimesTotal"], t["putMessageSizeTotal"] = whole(m.Put.Sum()), whole(m.PutBytes.Load())
	t["putMessageFailedTimes"] = whole(m.PutFailures.Load())
	average := 0.0
	if n := m.Put.Sum(); n > 0 {
		average = float64(m.PutBytes.Load()) / float64(n)
	}
	t["putMessageAverageSize"] = decimal(average)
	t["putMessageEntireTimeMax"], t["getMessageEntireTimeMax"] = whole(m.PutSlowest()), whole(m.GetSlowest())
	names := []string{"<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s", "1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~"}
	var b strings.Builder
	for i, n := range m.PutClasses() {
		fmt.Fprintf(&b, "[%s]:%d ", names[i], n)
	}
	t["putMessageDistributeTime"] = strings.TrimSpace(b.String())
	d := m.Days()
	t["msgPutTotalYesterdayMorning"], t["msgPutTotalTodayMorning"], t["msgPutTotalTodayNow"] = whole(d.PutYesterday), whole(d.PutToday), whole(d.PutNow)
	t["msgGetTotalYesterdayMorning"], t["msgGetTotalTodayMorning"], t["msgGetTotalTodayNow"] = whole(d.GetYesterday), whole(d.GetToday), whole(d.GetNow)
}

func (h *Handlers) storage(t map[string]string) {
	s := h.Store.Stats()
	t["commitLogDiskRatio"], t["consumeQueueDiskRatio"] = decimal(s.CommitLogDiskRatio), decimal(s.ConsumeQueueDiskRatio)
	if s.CommitLogDir != "" {
		t["commitLogDiskRatio_"+s.CommitLogDir] = decimal(s.CommitLogDiskRatio)
	}
	t["commitLogMinOffset"], t["commitLogMaxOffset"] = whole(s.MinOffset), whole(s.AppendedOffset)
	t["dispatchBehindBytes"] = whole(s.AppendedOffset - s.DispatchedOffset)
	t["remainHowManyDataToFlush"] = strconv.FormatInt(s.AppendedOffset-s.DurableOffset, 10) + " B"
	t["earliestMessageTimeStamp"] = whole(s.EarliestStoreTime)
	t["brokerActive"] = strconv.FormatBool(s.Writable)
	if !s.Writable {
		t["writeRefusedReason"] = s.NotWritableReason
	}
}

// constants are the figures that do not come from counters, and those that tools insist on: this broker has no thread pools
// whose queues could fill, no timer wheel and no page cache lock, so that theirs are zero.
func (h *Handlers) constants(t map[string]string) {
	up := time.Since(h.Self.Started)
	t["bootTimestamp"] = whole(h.Self.Started.UnixMilli())
	days, rest := up/(24*time.Hour), up%(24*time.Hour)
	t["runtime"] = fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]", days, rest/time.Hour, rest%time.Hour/time.Minute, rest%time.Minute/time.Second)
	t["brokerVersionDesc"], t["brokerVersion"] = h.Self.Version, strconv.Itoa(protocol.ServerVersion)
	t["startAcceptSendRequestTimeStamp"] = whole(h.Self.AcceptFrom)
	for _, pool := range []string{"send", "pull", "litePull", "query", "ack"} {
		t[pool+"ThreadPoolQueueSize"], t[pool+"ThreadPoolQueueHeadWaitTimeMills"] = "0", "0"
	}
	for _, key := range []string{
		"EndTransactionQueueSize", "pageCacheLockTimeMills", "timerReadBehind", "timerOffsetBehind", "timerCongestNum",
		"dispatchMaxBuffer", "remainTransientStoreBufferNumbs",
	} {
		t[key] = "0"
	}
	t["timerEnqueueTps"], t["timerDequeueTps"] = "0.0", "0.0"
}
