// Package meter counts what a broker does: messages in and out by topic and group, and rates over seconds, minutes, hours
// and days. Counting costs a few atomic additions and allocates nothing once a topic and group are known; sampling is done
// by Run. It knows no requests: package ops answers with its figures.
package meter

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Topic are the counters of one topic.
type Topic struct {
	PutNums, PutSize Item
	groups           named[Group]
}

// Group are the counters of one consumer group on one topic. Latency is in milliseconds.
type Group struct{ GetNums, GetSize, GetLatency, SendBack Item }

// Table holds all counters of a broker. Safe for concurrent use. The zero value counts; Run makes rates of the counts.
type Table struct {
	Put, Get                Item // messages, and the requests they came in
	PutBytes, GetBytes      atomic.Int64
	PutFailures, GetMisses  atomic.Int64
	GetFounds               atomic.Int64
	putSlowest, getSlowest  atomic.Int64 // ms
	putClasses              [len(putBounds) + 1]atomic.Int64
	topics                  named[Topic]
	sampling                sync.Mutex // guards all histories and rates
	put, found, miss, moved rate
	total                   rate
	days                    Days
}

// Days are totals at day borders (local time), as runtime info reports them.
type Days struct {
	today                  int
	PutYesterday, PutToday int64 // totals at yesterday's and today's midnight, or at the start
	GetYesterday, GetToday int64
	PutNow, GetNow         int64
}

// putBounds are the upper bounds, in ms, of the classes of put times that runtime info prints (StoreStatsService).
var putBounds = [...]int64{0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000}

// Topic returns the counters of a topic, making them at first use.
func (t *Table) Topic(topic []byte) *Topic { return t.topics.get(topic) }

// Group returns the counters of a group on the topic, making them at first use.
func (t *Topic) Group(group []byte) *Group { return t.groups.get(group) }

// Stored counts an accepted send request of count messages and size record bytes.
func (t *Table) Stored(topic []byte, count, size int64, took time.Duration) {
	c := t.Topic(topic)
	c.PutNums.Add(count, 1)
	c.PutSize.Add(size, 1)
	t.Put.Add(count, 1)
	t.PutBytes.Add(size)
	ms := took.Milliseconds()
	raise(&t.putSlowest, ms)
	class := 0
	for class < len(putBounds) && ms > putBounds[class] {
		class++
	}
	t.putClasses[class].Add(1)
}

// Refused counts a send that was not stored.
func (t *Table) Refused() { t.PutFailures.Add(1) }

// Pulled counts a pull answered with count messages and size bytes.
func (t *Table) Pulled(group, topic []byte, count, size int64, took time.Duration) {
	g := t.Topic(topic).Group(group)
	g.GetNums.Add(count, 1)
	g.GetSize.Add(size, 1)
	g.GetLatency.Add(took.Milliseconds(), 1)
	t.Get.Add(count, 1)
	t.GetBytes.Add(size)
	t.GetFounds.Add(1)
	raise(&t.getSlowest, took.Milliseconds())
}

// Missed counts a pull answered with nothing.
func (t *Table) Missed() { t.GetMisses.Add(1) }

// SentBack counts a message that a consumer gave back.
func (t *Table) SentBack(group, topic []byte) { t.Topic(topic).Group(group).SendBack.Add(1, 1) }

// ForgetTopic and ForgetGroup drop the counters of what was deleted.
func (t *Table) ForgetTopic(topic string) { t.topics.drop(topic) }

// ForgetGroup drops the counters of a group on every topic.
func (t *Table) ForgetGroup(group string) {
	for _, c := range t.topics.all() {
		c.groups.drop(group)
	}
}

// Rates are events per second over 1, 10 and 60 s.
type Rates [3]float64

// Speed are the rates of the whole broker.
type Speed struct{ Put, GetFound, GetMiss, GetTotal, Transferred Rates }

// Speed returns the current rates.
func (t *Table) Speed() Speed {
	t.sampling.Lock()
	defer t.sampling.Unlock()
	three := func(r *rate) Rates { return Rates{r.per(1), r.per(10), r.per(60)} }
	return Speed{three(&t.put), three(&t.found), three(&t.miss), three(&t.total), three(&t.moved)}
}

// PutSlowest and GetSlowest are the longest times seen, in ms.
func (t *Table) PutSlowest() int64 { return t.putSlowest.Load() }
func (t *Table) GetSlowest() int64 { return t.getSlowest.Load() }

// PutClasses counts put requests by time: at most 0, 10, 50, … ms, and above.
func (t *Table) PutClasses() []int64 {
	out := make([]int64, len(t.putClasses))
	for i := range t.putClasses {
		out[i] = t.putClasses[i].Load()
	}
	return out
}

// Days returns the totals at day borders.
func (t *Table) Days() Days {
	t.sampling.Lock()
	defer t.sampling.Unlock()
	d := t.days
	d.PutNow, d.GetNow = t.Put.Sum(), t.Get.Sum()
	return d
}

// PutRate is the rate of messages put to a topic over the last minute; GetRate of those a group took of it.
func (t *Table) PutRate(topic string) float64 {
	c, ok := t.topics.all()[topic]
	if !ok {
		return 0
	}
	return t.minute(&c.PutNums).TPS
}

// GetRate is the rate of messages that a group took of a topic over the last minute.
func (t *Table) GetRate(group, topic string) float64 {
	c, ok := t.topics.all()[topic]
	if !ok {
		return 0
	}
	g, ok := c.groups.all()[group]
	if !ok {
		return 0
	}
	return t.minute(&g.GetNums).TPS
}

func (t *Table) minute(i *Item) Figures {
	t.sampling.Lock()
	defer t.sampling.Unlock()
	return i.figures(i.history.minute, time.Now())
}

// Spans returns the figures of an item over the last minute, hour and day.
func (t *Table) Spans(i *Item) (minute, hour, day Figures) {
	t.sampling.Lock()
	defer t.sampling.Unlock()
	now := time.Now()
	return i.figures(i.history.minute, now), i.figures(i.history.hour, now), i.figures(i.history.day, now)
}

// Run samples once a second until ctx ends.
func (t *Table) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	t.sample(time.Now(), true)
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			t.sample(now, n%int(minuteGrain/time.Second) == 0)
		}
	}
}

func (t *Table) sample(now time.Time, items bool) {
	t.sampling.Lock()
	defer t.sampling.Unlock()
	found, miss := t.GetFounds.Load(), t.GetMisses.Load()
	t.put.take(t.Put.Sum())
	t.found.take(found)
	t.miss.take(miss)
	t.total.take(found + miss)
	t.moved.take(t.Get.Sum())
	if day := now.YearDay(); day != t.days.today {
		first := t.days.today == 0
		t.days.today = day
		t.days.PutYesterday, t.days.GetYesterday = t.days.PutToday, t.days.GetToday
		if !first {
			t.days.PutToday, t.days.GetToday = t.Put.Sum(), t.Get.Sum()
		}
	}
	if !items {
		return
	}
	t.Put.take(now)
	t.Get.take(now)
	for _, c := range t.topics.all() {
		c.PutNums.take(now)
		c.PutSize.take(now)
		for _, g := range c.groups.all() {
			for _, i := range []*Item{&g.GetNums, &g.GetSize, &g.GetLatency, &g.SendBack} {
				i.take(now)
			}
		}
	}
}

// raise lifts a to at least v.
func raise(a *atomic.Int64, v int64) {
	for old := a.Load(); v > old && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

// named is a map that is read without a lock and copied to change, for few names and many reads.
type named[T any] struct {
	current atomic.Pointer[map[string]*T]
	adding  sync.Mutex
}

func (n *named[T]) get(name []byte) *T {
	if m := n.current.Load(); m != nil {
		if v := (*m)[string(name)]; v != nil {
			return v
		}
	}
	n.adding.Lock()
	defer n.adding.Unlock()
	m := maps.Clone(n.all())
	if v := m[string(name)]; v != nil {
		return v
	}
	if m == nil {
		m = map[string]*T{}
	}
	v := new(T)
	m[string(name)] = v
	n.current.Store(&m)
	return v
}

func (n *named[T]) all() map[string]*T {
	if m := n.current.Load(); m != nil {
		return *m
	}
	return nil
}

func (n *named[T]) drop(name string) {
	n.adding.Lock()
	defer n.adding.Unlock()
	if m := n.all(); m[name] != nil {
		m = maps.Clone(m)
		delete(m, name)
		n.current.Store(&m)
	}
}

// Find returns the counter of a statistic by RocketMQ's name and key (VIEW_BROKER_STATS_DATA): TOPIC_* are keyed by topic,
// GROUP_* and SNDBCK_PUT_NUMS by topic@group, BROKER_* by cluster.
func (t *Table) Find(statistic, topic, group string) (*Item, bool) {
	switch statistic {
	case "BROKER_PUT_NUMS":
		return &t.Put, true
	case "BROKER_GET_NUMS":
		return &t.Get, true
	}
	c, ok := t.topics.all()[topic]
	if !ok {
		return nil, false
	}
	switch statistic {
	case "TOPIC_PUT_NUMS":
		return &c.PutNums, true
	case "TOPIC_PUT_SIZE":
		return &c.PutSize, true
	}
	g, ok := c.groups.all()[group]
	if !ok {
		return nil, false
	}
	switch statistic {
	case "GROUP_GET_NUMS":
		return &g.GetNums, true
	case "GROUP_GET_SIZE":
		return &g.GetSize, true
	case "GROUP_GET_LATENCY":
		return &g.GetLatency, true
	case "SNDBCK_PUT_NUMS":
		return &g.SendBack, true
	}
	return nil, false
}
