package transaction

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

// opTag marks an op record that removes half messages (TransactionalMessageUtil.REMOVE_TAG).
const opTag = "d"

// collect takes as many waiting offsets as fit one op record, as `17,18,`.
func (t *Transactions) collect(first int64) []byte {
	body := strconv.AppendInt(nil, first, 10)
	body = append(body, ',')
	for len(body) < t.cfg.OpBytesMax {
		select {
		case offset := <-t.ops:
			body = append(strconv.AppendInt(body, offset, 10), ',')
		default:
			return body
		}
	}
	return body
}

// writeOp appends one op record; a refusal is tried again until ctx ends, for without it a decided message is checked again
// after a restart.
func (t *Transactions) writeOp(ctx context.Context, body []byte) {
	m := message.Message{
		Topic: topic.OpHalf, Body: body, Properties: message.MakeProperties(map[string]string{message.Tags: opTag}),
		BornTimestamp: time.Now().UnixMilli(), BornHost: t.deps.Host, StoreHost: t.deps.Host,
	}
	for failures := 0; ; failures++ {
		r := t.deps.Writer.Write(ctx, write.Request{Message: &m, Received: time.Now(), NoWait: true})
		if r.Err == nil || r.Appended.End > 0 {
			return
		}
		if failures%100 == 0 {
			t.deps.Logger.Warn("op record of transactions refused, trying again", "error", r.Err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.deps.Logger.Warn("op record of transactions not written: its messages will be checked again", "error", r.Err)
			return
		}
	}
}

// readOps takes over all op records from opNext on. Bodies are lists of half offsets; one that cannot be read is counted
// and passed.
func (t *Transactions) readOps() error {
	entries := make([]store.QueueEntry, 64)
	for {
		t.mu.Lock()
		next := t.opNext
		t.mu.Unlock()
		n, err := t.entries(topic.OpHalf, next, entries)
		if err != nil || n == 0 {
			if low, _ := t.deps.Log.QueueBounds(topic.OpHalf, 0); low > next {
				t.mu.Lock()
				t.opNext = low
				t.mu.Unlock()
				continue
			}
			return err
		}
		for _, e := range entries[:n] {
			if err := t.readOp(e); err != nil {
				return err
			}
		}
	}
}

// entries reads a queue; one that nothing was written to yet is empty.
func (t *Transactions) entries(name string, from int64, into []store.QueueEntry) (int, error) {
	n, err := t.deps.Log.QueueEntries(name, 0, from, into)
	if errors.Is(err, store.ErrQueueNotFound) {
		return 0, nil
	}
	return n, err
}

func (t *Transactions) readOp(e store.QueueEntry) error {
	offsets, err := t.opOffsets(e)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	read := opRead{offset: t.opNext, highest: -1}
	t.opNext++
	for _, o := range offsets {
		if _, known := t.resolved[o]; o >= t.halfNext && !known {
			t.resolved[o] = givenUp // decided by an earlier run
		}
		read.highest = max(read.highest, o)
	}
	t.opsRead = append(t.opsRead, read)
	return nil
}

// opOffsets reads one op record. A record that is gone or broken has none: passing it leaves at most its messages to be
// checked again, stopping would leave all later ones unresolved.
func (t *Transactions) opOffsets(e store.QueueEntry) ([]int64, error) {
	record, release, ok, err := t.read(e)
	if err != nil || !ok {
		return nil, err
	}
	defer release()
	var out []int64
	for field := range bytes.SplitSeq(record.Body, []byte{','}) {
		if field = bytes.TrimSpace(field); len(field) == 0 {
			continue
		}
		o, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			t.quarantine("op record is not a list of offsets", e)
			return out, nil
		}
		out = append(out, o)
	}
	return out, nil
}
