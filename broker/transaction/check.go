package transaction

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/store"
)

// Load reads what the log knows of undecided messages; decisions wait for it.
func (t *Transactions) Load(ctx context.Context) error {
	low, high := t.deps.Log.QueueBounds(topic.Half, 0)
	opLow, opHigh := t.deps.Log.QueueBounds(topic.OpHalf, 0)
	t.mu.Lock()
	t.halfNext = min(max(t.deps.Progress.Query(group, topic.Half, 0), low), high)
	t.opNext = min(max(t.deps.Progress.Query(group, topic.OpHalf, 0), opLow), opHigh)
	from := t.halfNext
	t.mu.Unlock()
	if err := t.metrics.load(t.deps.Files); err != nil {
		return err
	}
	if err := t.readOps(); err != nil {
		return err
	}
	err := t.scan(ctx, from, high, func(e store.QueueEntry, offset int64) error {
		record, release, ok, err := t.read(e)
		if err != nil || !ok {
			return err
		}
		defer release()
		t.locate(firstOffset(&record), place{offset, record.PhysicalOffset})
		return nil
	})
	if err == nil {
		close(t.loaded)
	}
	return err
}

// locate learns a place of a half message. Of several places the latest counts, and a decision about any is one about all.
func (t *Transactions) locate(first int64, at place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first == at.queueOffset {
		return
	}
	before, known := t.moved[first]
	if known && before.queueOffset >= at.queueOffset {
		return
	}
	if !known {
		before = place{queueOffset: first}
	}
	d, decided := t.resolved[before.queueOffset]
	if _, done := t.resolved[at.queueOffset]; decided && d != elsewhere && !done {
		t.resolved[at.queueOffset] = d
	}
	if before.queueOffset >= t.halfNext && !decided {
		t.resolved[before.queueOffset] = elsewhere
	}
	delete(t.firstOf, before.queueOffset)
	t.moved[first], t.firstOf[at.queueOffset] = at, first
}

// round looks at every half message that may be undecided, asks about those that are due, and stores how far all is done.
// What was done counts even if the round ends early.
func (t *Transactions) round(ctx context.Context) {
	_, high := t.deps.Log.QueueBounds(topic.Half, 0)
	err := t.readOps()
	waiting := map[string]int64{}
	if err == nil {
		t.mu.Lock()
		from := t.halfNext
		t.mu.Unlock()
		err = t.scan(ctx, from, high, func(e store.QueueEntry, offset int64) error {
			t.mu.Lock()
			_, done := t.resolved[offset]
			t.mu.Unlock()
			if done {
				return nil
			}
			return t.consider(ctx, e, offset, waiting)
		})
		err = errors.Join(err, t.askAll(ctx))
	}
	if err != nil && ctx.Err() == nil {
		t.deps.Logger.Warn("check of transactions ended early", "error", err)
	}
	t.waiting.Store(&waiting)
	t.metrics.set(waiting, time.Now())
	if err := t.save(ctx); err != nil && ctx.Err() == nil {
		t.deps.Logger.Error("progress of transactions not stored", "error", err)
	}
}

// scan calls fn for each half queue entry from from up to end.
func (t *Transactions) scan(ctx context.Context, from, end int64, fn func(e store.QueueEntry, offset int64) error) error {
	entries := make([]store.QueueEntry, 256)
	for from < end && ctx.Err() == nil {
		n, err := t.entries(topic.Half, from, entries)
		if err != nil || n == 0 {
			low, _ := t.deps.Log.QueueBounds(topic.Half, 0)
			if low <= from {
				return err
			}
			t.forget(from, low)
			from = low
			continue
		}
		for _, e := range entries[:n] {
			if err := fn(e, from); err != nil {
				return err
			}
			if from++; from >= end {
				break
			}
		}
	}
	return ctx.Err()
}

// forget marks messages that the retention of the log has deleted.
func (t *Transactions) forget(from, end int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o := max(from, t.halfNext); o < end; o++ {
		if _, done := t.resolved[o]; !done {
			t.resolved[o] = givenUp
		}
	}
}

// consider decides what to do about one undecided half message.
func (t *Transactions) consider(ctx context.Context, e store.QueueEntry, offset int64, waiting map[string]int64) error {
	record, release, ok, err := t.read(e)
	if err != nil {
		return err
	}
	if !ok {
		t.resolve(offset, givenUp)
		return nil
	}
	defer release()
	first := firstOffset(&record)
	if !t.open(first, place{offset, record.PhysicalOffset}) {
		return nil
	}
	now := time.Now().UnixMilli()
	age := time.Duration(now-min(record.BornTimestamp, record.StoreTimestamp)) * time.Millisecond
	checks, _ := strconv.Atoi(record.Properties.Get(message.TransactionCheckTime)) // absent or broken: not checked yet
	silent, hasSilent := immunity(record.Properties)
	if age > t.cfg.Reserved {
		t.deps.Logger.Warn("half message is older than the log keeps messages: given up", "half_offset", offset)
		t.resolve(offset, givenUp)
		return nil
	}
	waiting[record.Properties.Get(message.RealTopic)]++
	switch {
	case hasSilent && age < silent:
		_, _, err = t.appendAgain(ctx, &record, first, checks)
		return err
	case age < t.cfg.Timeout:
		return nil
	case checks >= int(t.cfg.CheckMax):
		return t.giveUp(ctx, &record, first)
	}
	at, open, err := t.appendAgain(ctx, &record, first, checks+1)
	if err != nil || !open {
		return err
	}
	t.question(&record, at)
	if len(t.questions) >= questionsMax {
		return t.askAll(ctx)
	}
	return nil
}

// open reports whether a message may be checked: it is undecided at this place, and no decision is being carried out.
func (t *Transactions) open(first int64, at place) bool {
	t.locate(first, at)
	t.mu.Lock()
	defer t.mu.Unlock()
	_, done := t.resolved[at.queueOffset]
	_, deciding := t.busy[first]
	return !done && !deciding
}

// appendAgain moves a half message to the end of its queue, so that no undecided one keeps the queue's progress back. open
// says that it is still undecided there.
func (t *Transactions) appendAgain(ctx context.Context, r *message.Record, first int64, checks int) (at store.Appended, open bool, err error) {
	m := again(r, checks)
	w := t.deps.Writer.Write(ctx, write.Request{Message: &m, Received: time.Now(), NoWait: true})
	if w.Appended.End == 0 {
		if w.Err == nil {
			return at, false, errors.New("transaction: half message neither appended nor refused")
		}
		return at, false, w.Err
	}
	at = w.Appended
	t.mu.Lock()
	d, decided := t.resolved[r.QueueOffset]
	delete(t.firstOf, r.QueueOffset)
	t.moved[first], t.firstOf[at.QueueOffset] = place{at.QueueOffset, at.Begin}, first
	if decided { // while it was appended
		t.resolved[at.QueueOffset] = d
	} else {
		t.resolved[r.QueueOffset] = elsewhere
	}
	_, deciding := t.busy[first]
	t.mu.Unlock()
	if decided {
		err = t.announce(ctx, at.QueueOffset)
	}
	return at, !decided && !deciding, err
}

// giveUp parks a message that nobody decided where an operator finds it. That too is a decision: an end that comes
// meanwhile is refused.
func (t *Transactions) giveUp(ctx context.Context, r *message.Record, first int64) error {
	at := place{r.QueueOffset, r.PhysicalOffset}
	if prior, _, err := t.claim(first, at, givenUp); err != nil || prior != undecided {
		return nil //nolint:nilerr // decided meanwhile: nothing is left to do
	}
	err := t.park(ctx, r)
	if err != nil {
		t.settle(first, at, undecided)
		return err
	}
	t.settle(first, at, givenUp)
	t.deps.Logger.Warn("transaction given up after its last check", "half_offset", r.QueueOffset,
		"topic", r.Properties.Get(message.RealTopic), "moved_to", topic.CheckMaxTime)
	return nil
}

func (t *Transactions) park(ctx context.Context, r *message.Record) error {
	parked := topic.Config{Name: topic.CheckMaxTime, ReadQueues: 1, WriteQueues: 1, Perm: topic.PermRead | topic.PermWrite}
	if _, err := t.deps.Topics.Ensure(parked); err != nil {
		return err
	}
	checks, _ := strconv.Atoi(r.Properties.Get(message.TransactionCheckTime)) // it was readable before
	m := again(r, checks)
	m.Topic = topic.CheckMaxTime
	if w := t.deps.Writer.Write(ctx, write.Request{Message: &m, Received: time.Now(), NoWait: true}); w.Err != nil && w.Appended.End == 0 {
		return w.Err
	}
	return nil
}

func (t *Transactions) resolve(offset int64, d decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, done := t.resolved[offset]; !done {
		t.resolved[offset] = d
	}
}

// question is a check that waits until its half message can be read: the producer's answer names the place, and may come
// back before the append is confirmed.
type question struct {
	to  client.Member
	cmd *protocol.Command
	end int64 // of the half message in the log
}

// questionsMax bounds the checks that wait for one flush.
const questionsMax = 256

// askAll sends the checks of the messages that were appended again.
func (t *Transactions) askAll(ctx context.Context) error {
	questions := t.questions
	t.questions = questions[:0]
	if len(questions) == 0 {
		return nil
	}
	t.deps.Durability.RequestFlush()
	if err := t.deps.Durability.Confirmed().Wait(ctx, questions[len(questions)-1].end); err != nil {
		return err
	}
	for _, q := range questions {
		if err := q.to.Conn.InvokeOneway(q.cmd); err != nil {
			t.deps.Logger.Debug("check of a transaction not sent", "client", q.to.ClientID, "error", err)
		}
	}
	return nil
}

// question prepares the check for one producer of the message's group, chosen at random. Nobody there means no answer now:
// the next round asks again.
func (t *Transactions) question(r *message.Record, at store.Appended) {
	members := t.deps.Producers.Producers(r.Properties.Get(message.ProducerGroup))
	name, queue, ok := realPlace(r.Properties)
	if len(members) == 0 || !ok {
		t.deps.Logger.Debug("no producer to ask about a transaction", "half_offset", at.QueueOffset)
		return
	}
	m := again(r, 0)
	m.Topic, m.QueueID = name, queue
	if text, has := r.Properties.Lookup(message.TransactionCheckTime); has {
		m.Properties = m.Properties.Set(message.TransactionCheckTime, string(text))
	}
	unique := r.Properties.Get(message.UniqueKey)
	body := message.AppendRecord(nil, &m, at.Begin, at.QueueOffset, at.StoreTimestamp)
	cmd := protocol.NewRequest(&protocol.CheckTransactionStateRequest{
		Topic: topic.Half, TranStateTableOffset: at.QueueOffset, CommitLogOffset: at.Begin, MsgID: unique, TransactionID: unique,
		OffsetMsgID: message.OffsetID(r.StoreHost, at.Begin),
	}, body)
	to := members[rand.IntN(len(members))] //nolint:gosec // which producer is asked is no secret
	t.questions = append(t.questions, question{to: to, cmd: cmd, end: at.End})
}

// save advances over all that is decided and stores how far. The log is made durable first: nothing that a crash could
// still undo counts as done.
func (t *Transactions) save(ctx context.Context) error {
	t.mu.Lock()
	for {
		if _, done := t.resolved[t.halfNext]; !done {
			break
		}
		delete(t.resolved, t.halfNext)
		if first, ok := t.firstOf[t.halfNext]; ok {
			delete(t.firstOf, t.halfNext)
			delete(t.moved, first)
		}
		t.halfNext++
	}
	half, op := t.halfNext, t.opNext
	for len(t.opsRead) > 0 && t.opsRead[0].highest < half {
		t.opsRead = t.opsRead[1:]
	}
	if len(t.opsRead) > 0 {
		op = t.opsRead[0].offset
	}
	t.mu.Unlock()

	end := t.deps.Durability.Appended().Load()
	t.deps.Durability.RequestFlush()
	if err := t.deps.Durability.Durable().Wait(ctx, end); err != nil {
		return err
	}
	t.deps.Progress.Commit(group, topic.Half, 0, half)
	t.deps.Progress.Commit(group, topic.OpHalf, 0, op)
	return t.metrics.save(t.deps.Files)
}

// read decodes the record of a queue entry. ok is false for one that is gone or cannot be decoded: it is counted, logged
// and left alone, so that it keeps no other message from being decided.
func (t *Transactions) read(e store.QueueEntry) (r message.Record, release func(), ok bool, err error) {
	view, err := t.deps.Log.RecordAt(e.PhysicalOffset)
	if errors.Is(err, store.ErrRecordNotFound) {
		t.quarantine("its record is gone", e)
		return r, nil, false, nil
	}
	if err != nil {
		return r, nil, false, err
	}
	r, err = message.DecodeRecord(view.Bytes, false)
	if err != nil {
		view.Release()
		t.quarantine("its record cannot be decoded", e)
		return r, nil, false, nil //nolint:nilerr // reported, and passed over
	}
	return r, view.Release, true, nil
}

func (t *Transactions) quarantine(why string, e store.QueueEntry) {
	t.quarantined.Add(1)
	t.deps.Logger.Error("transaction record left alone", "reason", why, "physical_offset", e.PhysicalOffset)
}
