package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/consumequeue"
	"github.com/quorate/quorate/store/segment"
)

// GetStatus is the outcome of a Get (RocketMQ GetMessageStatus).
type GetStatus int

// Statuses, as PROTOCOL §3.7 names them.
const (
	Found GetStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetFoundNull
	OffsetOverflowBadly
	OffsetOverflowOne
	OffsetTooSmall
	NoMatchedLogicQueue
	NoMessageInQueue
	OffsetReset
)

var statusNames = [...]string{
	"FOUND", "NO_MATCHED_MESSAGE", "MESSAGE_WAS_REMOVING", "OFFSET_FOUND_NULL", "OFFSET_OVERFLOW_BADLY",
	"OFFSET_OVERFLOW_ONE", "OFFSET_TOO_SMALL", "NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE", "OFFSET_RESET",
}

// String is the name that RocketMQ puts into the remark.
func (s GetStatus) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return "UNKNOWN"
	}
	return statusNames[s]
}

// Filter decides about candidates of a Get. Nil takes all. TagsCode sees the consume-queue entry; Record the record bytes (exact tags).
type Filter interface {
	MatchTagsCode(code int64) bool
	MatchRecord(record []byte) bool
}

// GetResult is what a Get found. The caller releases every view. A view holds one or more whole records, back to back; all
// views in order are the body of a pull answer.
type GetResult struct {
	Status             GetStatus
	NextBegin          int64
	MinOffset          int64
	MaxOffset          int64
	Views              []View
	Bytes              int
	Count              int
	SuggestFromReplica bool
}

// Release gives back all views. It may be called again, and on a zero result.
func (g *GetResult) Release() {
	for i, v := range g.Views {
		v.Release()
		g.Views[i] = View{}
	}
	g.Views = g.Views[:0]
}

// Bounds of a Get that are not configuration (DefaultMessageStore.MAX_PULL_MSG_SIZE and its lower bound).
const (
	getBytesMax = 128 << 20
	getBytesMin = 100
	// viewBytesMax bounds one buffer of a result.
	viewBytesMax = 4 << 20
	// spanMax and spanDensity: records in files that lie closer than that are read at once, the bytes between them as well.
	spanMax     = 256 << 10
	spanDensity = 6
)

// pick is a record that a Get takes.
type pick struct {
	offset int64 // physical
	size   int32
	next   int64 // queue offset behind it
}

// getter is the scratch of one Get.
type getter struct {
	units consumequeue.Units
	picks []pick
	span  []byte
}

var getters = sync.Pool{New: func() any { return new(getter) }}

// Get reads records of one queue from offset on: at most maxCount and maxBytes (and RocketMQ's transfer limits), at least
// one when one matches. Only confirmed and dispatched records are seen. into is reused when it has capacity; what it held
// must be released before. With an error into holds nothing.
func (s *Store) Get(topic string, queueID int32, offset int64, maxCount, maxBytes int, f Filter, into *GetResult) error {
	*into = GetResult{Views: into.Views[:0], NextBegin: offset}
	q := s.queues.Lookup(topic, queueID)
	if q == nil || !q.Exists() {
		into.Status, into.NextBegin = NoMatchedLogicQueue, 0
		return nil
	}
	into.MinOffset, into.MaxOffset = q.Bounds()
	switch {
	case into.MaxOffset == 0:
		into.Status, into.NextBegin = NoMessageInQueue, 0
	case offset < into.MinOffset:
		into.Status, into.NextBegin = OffsetTooSmall, into.MinOffset
	case offset == into.MaxOffset:
		into.Status = OffsetOverflowOne
	case offset > into.MaxOffset:
		into.Status, into.NextBegin = OffsetOverflowBadly, into.MaxOffset
	default:
		g := getters.Get().(*getter)
		err := s.get(q, offset, maxCount, min(max(maxBytes, getBytesMin), getBytesMax), f, into, g)
		getters.Put(g)
		if err != nil {
			into.Release()
			return err
		}
	}
	return nil
}

func (s *Store) get(q *consumequeue.Queue, offset int64, maxCount, maxBytes int, f Filter, into *GetResult, g *getter) error {
	scan := max(s.cfg.Read.ScanBytesMax, 20*maxCount) / consumequeue.UnitSize
	n := scan
	if f == nil {
		n = min(scan, max(maxCount, 1))
	}
	if err := q.Read(offset, n, &g.units); err != nil {
		return err
	}
	into.Status = NoMatchedMessage
	if g.units.Len() == 0 { // retention took it between the two looks
		into.Status = OffsetFoundNull
		into.NextBegin = s.rollQueue(offset)
		return nil
	}
	end := s.confirmed.Load()
	lastPhysical, next := s.choose(offset, maxCount, maxBytes, f, end, g)
	into.NextBegin = next
	removing, err := s.collect(f, into, g)
	if err != nil {
		return err
	}
	switch {
	case into.Count > 0:
		into.Status = Found
	case removing:
		into.Status = MessageWasRemoving
	}
	into.SuggestFromReplica = end-lastPhysical > s.memory()
	return nil
}

// rollQueue is the first offset of the next file of a queue.
func (s *Store) rollQueue(offset int64) int64 {
	units := (s.cfg.ConsumeQueueFileSize + consumequeue.UnitSize - 1) / consumequeue.UnitSize
	return (offset/units + 1) * units
}

// memory is how far behind the end of the log a record counts as in memory (StoreUtil, accessMessageInMemoryMaxRatio).
func (s *Store) memory() int64 {
	return s.cfg.Read.PhysicalMemory / 100 * int64(s.cfg.Read.MemoryRatio)
}

// choose goes over the units and picks records until a limit is reached. next is the offset behind the last one looked at.
func (s *Store) choose(offset int64, maxCount, maxBytes int, f Filter, end int64, g *getter) (lastPhysical, next int64) {
	g.picks = g.picks[:0]
	next, bytes := offset, 0
	for i := range g.units.Len() {
		u := g.units.At(i)
		if len(g.picks) > 0 && s.full(len(g.picks), bytes, int(u.Size), maxCount, maxBytes, end-u.PhysicalOffset <= s.memory()) {
			break
		}
		if bytes >= maxBytes {
			break
		}
		next = offset + int64(i) + 1
		if !u.Valid() || u.Filler() {
			continue
		}
		lastPhysical = u.PhysicalOffset
		if f != nil && !f.MatchTagsCode(u.TagsCode) {
			continue
		}
		g.picks = append(g.picks, pick{u.PhysicalOffset, u.Size, next})
		bytes += int(u.Size)
	}
	return lastPhysical, next
}

// full is DefaultMessageStore.isTheBatchFull: count records of bytes are taken, one of size more is asked for.
func (s *Store) full(count, bytes, size, maxCount, maxBytes int, inMemory bool) bool {
	bytesMax, countMax := s.cfg.Read.DiskBytesMax, s.cfg.Read.DiskCountMax
	if inMemory {
		bytesMax, countMax = s.cfg.Read.MemoryBytesMax, s.cfg.Read.MemoryCountMax
	}
	return count >= maxCount || bytes+size > maxBytes || bytes+size > bytesMax || count >= countMax
}

// collect copies the picked records into views. removing tells that some are gone.
func (s *Store) collect(f Filter, into *GetResult, g *getter) (removing bool, err error) {
	rest := 0
	for _, p := range g.picks {
		rest += int(p.size)
	}
	var view View
	used := 0
	for i := 0; i < len(g.picks); {
		p := g.picks[i]
		if int(p.size) > viewBytesMax { // no memory for what a damaged entry claims
			switch err := s.begins(p); {
			case errors.Is(err, commitlog.ErrNotFound):
				removing = true
				rest -= int(p.size)
				i++
				continue
			case err != nil:
				return removing, into.stop(view, used, p, err)
			}
		}
		if used+int(p.size) > len(view.Bytes) {
			into.add(view, used)
			view, used = commitlog.NewView(max(min(rest, viewBytesMax), int(p.size))), 0
		}
		n, err := s.readRun(g, i, view.Bytes[used:])
		if errors.Is(err, commitlog.ErrNotFound) {
			removing = true
			rest -= int(p.size)
			i++
			continue
		}
		if err != nil {
			view.Release()
			return removing, err
		}
		// With a filter, what does not match is taken out again.
		from := used
		for _, p := range g.picks[i : i+n] {
			record := view.Bytes[from : from+int(p.size)]
			from += int(p.size)
			rest -= int(p.size)
			if err := s.intact(record, p); err != nil {
				return removing, into.stop(view, used, p, err)
			}
			if f != nil && !f.MatchRecord(record) {
				continue
			}
			used += copy(view.Bytes[used:], record)
			into.Count++
		}
		i += n
	}
	into.add(view, used)
	return removing, nil
}

// intact checks that a record is what its queue entry says. What comes from a file is checked to the last byte of its body:
// clients do not look, and a wrong size would make them misread all that follows.
func (s *Store) intact(record []byte, p pick) error {
	size, magic := message.RecordHead(record)
	if size == p.size && message.IsRecordMagic(magic) && s.log.InMemory(p.offset) {
		return nil
	}
	r, err := message.DecodeRecord(record, true)
	if err == nil && (r.Size != p.size || r.PhysicalOffset != p.offset) {
		err = fmt.Errorf("it says size %d at offset %d, its queue says size %d", r.Size, r.PhysicalOffset, p.size)
	}
	if err == nil {
		return nil
	}
	file := p.offset / s.cfg.CommitLogFileSize * s.cfg.CommitLogFileSize
	err = fmt.Errorf("%w: record at offset %d of the log, byte %d of file %s, queue offset %d: %w",
		ErrCorrupt, p.offset, p.offset-file, segment.Name(file), p.next-1, err)
	if s.corruptAt.Swap(p.offset+1) != p.offset+1 { // a consumer asks again and again
		s.logger.Error("a message is damaged on disk; who reads it is told so, others are served", slog.Any("error", err))
	}
	return err
}

// begins looks whether a record of the size of its queue entry begins where that says.
func (s *Store) begins(p pick) error {
	var head [message.BlankSize]byte
	if err := s.readWhole(head[:], p.offset); err != nil {
		return err
	}
	if size, magic := message.RecordHead(head[:]); size == p.size && message.IsRecordMagic(magic) {
		return nil
	}
	return s.intact(head[:], p)
}

// stop ends a Get before p, which is damaged. What lies before it is good: the next Get says what is wrong.
func (g *GetResult) stop(view View, used int, p pick, damage error) error {
	if g.Count == 0 {
		view.Release()
		return damage
	}
	g.add(view, used)
	g.NextBegin = p.next - 1
	return nil
}

func (g *GetResult) add(view View, used int) {
	if used == 0 {
		view.Release()
		return
	}
	view.Bytes = view.Bytes[:used]
	g.Views = append(g.Views, view)
	g.Bytes += used
}

// readRun reads the picks from i on that fit into b and can be had at once, back to back, and returns how many.
func (s *Store) readRun(g *getter, i int, b []byte) (n int, err error) {
	first := g.picks[i]
	size, end, last := int(first.size), first.offset+int64(first.size), i+1
	// In memory each record is copied out by itself; in files, neighbours come with one read.
	inMemory := s.log.InMemory(first.offset)
	whole := true // no bytes between them
	file := first.offset / s.cfg.CommitLogFileSize
	for ; last < len(g.picks); last++ {
		p := g.picks[last]
		reach := p.offset + int64(p.size)
		if size+int(p.size) > len(b) || p.offset < end || p.offset/s.cfg.CommitLogFileSize != file {
			break
		}
		if p.offset != end && (inMemory || reach-first.offset > spanMax || reach-first.offset > int64(size+int(p.size))*spanDensity) {
			break
		}
		whole = whole && p.offset == end
		size, end = size+int(p.size), reach
	}
	if whole {
		return last - i, s.readWhole(b[:size], first.offset)
	}
	span := int(end - first.offset)
	if cap(g.span) < span {
		g.span = make([]byte, spanMax)
	}
	if err := s.readWhole(g.span[:span], first.offset); err != nil {
		return 0, err
	}
	at := 0
	for _, p := range g.picks[i:last] {
		from := p.offset - first.offset
		at += copy(b[at:], g.span[from:from+int64(p.size)])
	}
	return last - i, nil
}

// readWhole fills b from the log. What is not whole there is not found.
func (s *Store) readWhole(b []byte, offset int64) error {
	n, err := s.log.Read(b, offset)
	if err == nil && n < len(b) {
		err = commitlog.ErrNotFound
	}
	return err
}
