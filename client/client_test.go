package client

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

func queues(n int32) []Queue {
	var all []Queue
	for id := range n {
		all = append(all, Queue{Topic: "t", BrokerName: "b", QueueID: id})
	}
	return all
}

func TestAllocateDividesAllQueuesOnce(t *testing.T) {
	for n := range int32(20) {
		for members := 1; members < 9; members++ {
			var ids []string
			for i := range members {
				ids = append(ids, string(rune('a'+i)))
			}
			var together []Queue
			least, most := int(n), 0
			for _, id := range ids {
				share := Allocate(queues(n), ids, id)
				least, most = min(least, len(share)), max(most, len(share))
				together = append(together, share...)
			}
			if diff := cmp.Diff(queues(n), together); diff != "" {
				t.Fatalf("%d queues, %d members: %s", n, members, diff)
			}
			if most-least > 1 {
				t.Fatalf("%d queues, %d members: shares from %d to %d", n, members, least, most)
			}
		}
	}
	if got := Allocate(queues(4), []string{"a", "b"}, "c"); got != nil {
		t.Fatalf("a stranger gets %v", got)
	}
}

// The body is what RocketMQ 5.5.0 answers with acceptStandardJsonOnly=true, host and names changed.
const routeBody = `{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},"brokerName":"a","cluster":"C","enableActingMaster":false},{"brokerAddrs":{"1":"10.0.0.3:10911"},"brokerName":"b","cluster":"C"}],"filterServerTable":{},"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":3,"topicSysFlag":0,"writeQueueNums":2},{"brokerName":"b","perm":4,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1}]}`

func TestRouteKnowsWhatMayBeWrittenAndRead(t *testing.T) {
	r, err := parseRoute("t", []byte(routeBody))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Queue{{Topic: "t", BrokerName: "a", QueueID: 0}, {Topic: "t", BrokerName: "a", QueueID: 1}}, r.writable); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Queue{{Topic: "t", BrokerName: "a", QueueID: 0}, {Topic: "t", BrokerName: "a", QueueID: 1}, {Topic: "t", BrokerName: "a", QueueID: 2}, {Topic: "t", BrokerName: "b", QueueID: 0}}, r.readable("t")); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		broker   string
		readOnly bool
		want     string
	}{{"a", false, "10.0.0.1:10911"}, {"b", false, ""}, {"b", true, "10.0.0.3:10911"}, {"c", true, ""}} {
		if got := r.addr(c.broker, c.readOnly); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestProducerAvoidsTheBrokerThatFailed(t *testing.T) {
	r := &Route{writable: []Queue{{Topic: "t", BrokerName: "a", QueueID: 0}, {Topic: "t", BrokerName: "a", QueueID: 1}, {Topic: "t", BrokerName: "b", QueueID: 0}}}
	p := &Producer{}
	seen := map[string]int{}
	for range 30 {
		q, err := p.pick(r, "a")
		if err != nil || q.BrokerName != "b" {
			t.Fatal(q, err)
		}
		q, err = p.pick(r, "")
		if err != nil {
			t.Fatal(err)
		}
		seen[q.BrokerName]++
	}
	if seen["a"] == 0 || seen["b"] == 0 {
		t.Fatalf("not in turn: %v", seen)
	}
	if q, err := p.pick(&Route{writable: r.writable[:2]}, "a"); err != nil || q.BrokerName != "a" {
		t.Fatal("the only broker is not tried again:", q, err)
	}
	if _, err := p.pick(&Route{}, ""); err == nil {
		t.Fatal("a queue out of nothing")
	}
}

func TestSendHeaderIsWhatTheTypedHeaderSays(t *testing.T) {
	p := &Producer{group: "g", cfg: ProducerConfig{TopicQueues: 4}}
	for _, batch := range []bool{false, true} {
		out := p.single(&Message{Topic: "t", Body: []byte("x"), Tags: "T", Keys: []string{"k1", "k2"}, DelayLevel: 3, Flag: 7})
		out.batch = batch
		cmd := out.command(p, Queue{Topic: "t", BrokerName: "a", QueueID: 2})
		var h protocol.SendMessageRequestV2
		if err := protocol.DecodeHeader(cmd.Ext, &h); err != nil {
			t.Fatal(err)
		}
		if h.ProducerGroup != "g" || h.Topic != "t" || h.DefaultTopic != "TBW102" || h.DefaultTopicQueueNums != 4 || h.QueueID != 2 ||
			h.Flag != 7 || *h.Batch != batch || h.TargetBroker != "a" || h.BornTimestamp == 0 {
			t.Fatalf("%+v", h)
		}
		props := message.ParseProperties(message.Properties(h.Properties))
		if props["TAGS"] != "T" || props["KEYS"] != "k1 k2" || props["DELAY"] != "3" || props["UNIQ_KEY"] != out.id {
			t.Fatalf("%v", props)
		}
	}
}

func TestReceivedMessageIsWhatWasAppended(t *testing.T) {
	m := &message.Message{
		Topic: "t", QueueID: 3, Flag: 5, Body: []byte("hello"), BornTimestamp: 1000, BornHost: netip.MustParseAddrPort("10.0.0.9:1"),
		StoreHost:  netip.MustParseAddrPort("10.0.0.1:10911"),
		Properties: message.MakeProperties(map[string]string{"UNIQ_KEY": "id", "TAGS": "T", "KEYS": "a b"}),
	}
	b := message.AppendRecord(nil, m, 4096, 17, 2000)
	b = message.AppendRecord(b, m, 8192, 18, 2001)
	got, err := DecodeRecords("broker-a", b)
	if err != nil || len(got) != 2 {
		t.Fatal(len(got), err)
	}
	r := got[1]
	if r.Offset != 18 || r.PhysicalOffset != 8192 || string(r.Body) != "hello" || r.UniqueKey != "id" || r.Tags != "T" ||
		!cmp.Equal(r.Keys, []string{"a", "b"}) || r.Queue != (Queue{Topic: "t", BrokerName: "broker-a", QueueID: 3}) || r.Stored.UnixMilli() != 2001 ||
		r.OffsetID != message.OffsetID(m.StoreHost, 8192) {
		t.Fatalf("%+v", r)
	}
	m.SysFlag = message.FlagCompressed // which it is not
	b = message.AppendRecord(b, m, 12288, 19, 2002)
	if got, err = DecodeRecords("b", b); err != nil || len(got) != 3 || string(got[2].Body) != "hello" {
		t.Fatal("a message that lies about its compression hides others", len(got), err)
	}
	b[len(b)-1] ^= 0xff
	if _, err := DecodeRecords("b", b[:len(b)-3]); err == nil {
		t.Fatal("a torn answer is taken")
	}
}

func BenchmarkSendCommand(b *testing.B) {
	p := &Producer{group: "g", cfg: ProducerConfig{TopicQueues: 4}}
	m := &Message{Topic: "t", Body: make([]byte, 1024)}
	b.ReportAllocs()
	for b.Loop() {
		out := p.single(m)
		_ = out.command(p, Queue{Topic: "t", BrokerName: "a", QueueID: 2})
	}
}
