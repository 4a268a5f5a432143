package index

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/quorate/quorate/internal/vfs"
)

// Bounds that are not configuration.
const (
	pageSlots = 4096
	// entryBufferMax is how many bytes of entries are collected before they are written.
	entryBufferMax = 64 << 10
)

// file is one index file. One goroutine changes it; others read it under Index.mu.
type file struct {
	name  string
	f     vfs.File
	slots int
	room  int32 // entries it can hold, the unused 0 included
	head  header

	// Entries [inFile, head.next) are in buf, those before in the file.
	inFile int32
	buf    []byte
	// pages are the slots in memory, nil where none was needed yet. Dirty ones reach the file only with sync: on disk no
	// slot may point to an entry that is not durable.
	pages [][]byte
	dirty []bool

	changed bool // since the last sync
	idle    int  // syncs without a change
}

func fileSize(slots int, entries int32) int64 {
	return headerSize + int64(slots)*slotSize + int64(entries)*entrySize
}

func newFile(name string, f vfs.File, slots int, room int32) *file {
	pages := (slots + pageSlots - 1) / pageSlots
	return &file{name: name, f: f, slots: slots, room: room, pages: make([][]byte, pages), dirty: make([]bool, pages)}
}

func (x *file) full() bool { return x.head.next >= x.room }

func (x *file) entryPosition(n int32) int64 {
	return headerSize + int64(x.slots)*slotSize + int64(n)*entrySize
}

// page returns the slots around slot i for changing.
func (x *file) page(i int) ([]byte, error) {
	p := i / pageSlots
	if x.pages[p] == nil {
		b := make([]byte, min(pageSlots, x.slots-p*pageSlots)*slotSize)
		if err := readFull(x.f, b, headerSize+int64(p)*pageSlots*slotSize); err != nil {
			return nil, fmt.Errorf("read slots of %s: %w", x.name, err)
		}
		x.pages[p] = b
	}
	return x.pages[p], nil
}

// slot reads one slot without keeping its page.
func (x *file) slot(i int) (int32, error) {
	if p := x.pages[i/pageSlots]; p != nil {
		return slotAt(p, i%pageSlots), nil
	}
	var b [slotSize]byte
	if err := readFull(x.f, b[:], headerSize+int64(i)*slotSize); err != nil {
		return 0, fmt.Errorf("read slot of %s: %w", x.name, err)
	}
	return slotAt(b[:], 0), nil
}

func (x *file) entry(n int32) (entry, error) {
	if n >= x.inFile {
		at := int(n-x.inFile) * entrySize
		if at+entrySize > len(x.buf) {
			return entry{}, fmt.Errorf("entry %d of %s: %w", n, x.name, errOutOfRange)
		}
		return decodeEntry(x.buf[at:]), nil
	}
	var b [entrySize]byte
	if err := readFull(x.f, b[:], x.entryPosition(n)); err != nil {
		return entry{}, fmt.Errorf("read entry of %s: %w", x.name, err)
	}
	return decodeEntry(b[:]), nil
}

var errOutOfRange = errors.New("no such entry")

func readFull(f vfs.File, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		clear(b[n:]) // a hole at the end of a file whose length a crash took
		return nil
	}
	return err
}

// put adds a key (RocketMQ IndexFile.putKey). On an error nothing has changed.
func (x *file) put(k pendingKey) error {
	if len(x.buf) >= entryBufferMax {
		if err := x.writeEntries(); err != nil {
			return err
		}
	}
	i := int(k.hash) % x.slots
	page, err := x.page(i)
	if err != nil {
		return err
	}
	prev := slotAt(page, i%pageSlots)
	if prev <= 0 || prev >= x.head.next {
		prev = 0
		x.head.usedSlots++
	}
	seconds := int64(0)
	if x.head.beginTime > 0 {
		seconds = min(max((k.storeTime-x.head.beginTime)/1000, 0), math.MaxInt32)
	}
	x.buf = entry{hash: k.hash, physical: k.physical, seconds: int32(seconds), prev: prev}.append(x.buf)
	setSlot(page, i%pageSlots, x.head.next)
	x.dirty[i/pageSlots] = true
	if x.head.next <= 1 {
		x.head.beginOffset, x.head.beginTime = k.physical, k.storeTime
	}
	x.head.next++
	x.head.endOffset, x.head.endTime = k.physical, k.storeTime
	x.changed = true
	return nil
}

func (x *file) writeEntries() error {
	if len(x.buf) == 0 {
		return nil
	}
	if _, err := x.f.WriteAt(x.buf, x.entryPosition(x.inFile)); err != nil {
		return fmt.Errorf("write entries of %s: %w", x.name, err)
	}
	x.inFile += int32(len(x.buf) / entrySize)
	x.buf = x.buf[:0]
	return nil
}

// sync makes the file durable in an order that a crash cannot confuse: entries, then the slots that point to them, then
// the header that counts them. On disk slots may so run ahead of the header, but never ahead of the entries.
func (x *file) sync() error {
	if !x.changed {
		x.rest()
		return nil
	}
	if err := x.writeEntries(); err != nil {
		return err
	}
	if err := x.f.Sync(); err != nil {
		return fmt.Errorf("sync entries of %s: %w", x.name, err)
	}
	if err := x.writeSlots(); err != nil {
		return err
	}
	if err := x.f.Sync(); err != nil {
		return fmt.Errorf("sync slots of %s: %w", x.name, err)
	}
	if _, err := x.f.WriteAt(x.head.append(nil), 0); err != nil {
		return fmt.Errorf("write header of %s: %w", x.name, err)
	}
	if err := x.f.Sync(); err != nil {
		return fmt.Errorf("sync header of %s: %w", x.name, err)
	}
	x.changed, x.idle = false, 0
	return nil
}

// idleSyncs is how many syncs without a change make a file give its memory back.
const idleSyncs = 2

func (x *file) rest() {
	if x.idle++; x.idle == idleSyncs {
		clear(x.pages)
		x.buf = nil
	}
}

// writeSlots writes the dirty pages, neighbours together.
func (x *file) writeSlots() error {
	var run []byte
	begin := 0
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		_, err := x.f.WriteAt(run, headerSize+int64(begin)*pageSlots*slotSize)
		run = run[:0]
		if err != nil {
			return fmt.Errorf("write slots of %s: %w", x.name, err)
		}
		return nil
	}
	for p := range x.pages {
		if !x.dirty[p] {
			if err := flush(); err != nil {
				return err
			}
			continue
		}
		if len(run) == 0 {
			begin = p
		}
		run = append(run, x.pages[p]...)
		if len(run) >= slotRunMax {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	clear(x.dirty)
	return nil
}

// slotRunMax bounds one write of slots.
const slotRunMax = 1 << 20

// timeMatches is IndexFile.isTimeMatched.
func (x *file) timeMatches(begin, end int64) bool {
	return begin < x.head.beginTime && end > x.head.endTime ||
		begin >= x.head.beginTime && begin <= x.head.endTime ||
		end >= x.head.beginTime && end <= x.head.endTime
}

// walk follows the chain of a hash from its newest entry on, until visit returns false. Numbers along a chain fall; a
// chain that does otherwise is damaged and ends there.
func (x *file) walk(hash int32, visit func(e entry) bool) error {
	n, err := x.slot(int(hash) % x.slots)
	if err != nil {
		return err
	}
	for limit := x.head.next; n > 0 && n < limit; {
		e, err := x.entry(n)
		if err != nil {
			return err
		}
		if e.seconds < 0 || !visit(e) {
			return nil
		}
		limit, n = n, e.prev
	}
	return nil
}

// cut takes back all entries from number next on: slots go back along their chains. Slots that point behind the end, as a
// crash may leave them, are set right as well. It is durable when cut returns.
func (x *file) cut(next int32) error {
	if err := x.writeEntries(); err != nil {
		return err
	}
	shorter := next < x.head.next
	x.changed = x.changed || shorter
	x.head.next = max(next, 1)
	x.inFile = min(x.inFile, x.head.next)
	x.head.usedSlots = 0
	for i := range x.slots {
		if err := x.setBack(i); err != nil {
			return err
		}
	}
	if shorter && x.head.next > 1 {
		e, err := x.entry(x.head.next - 1)
		if err != nil {
			return err
		}
		x.head.endOffset = e.physical
		x.head.endTime = x.head.beginTime + int64(e.seconds)*1000
	}
	return x.sync()
}

// setBack makes slot i point to an entry before the end.
func (x *file) setBack(i int) error {
	page, err := x.page(i)
	if err != nil {
		return err
	}
	old := slotAt(page, i%pageSlots)
	n := max(old, 0)
	for n >= x.head.next {
		e, err := x.rawEntry(n)
		if err != nil {
			return err
		}
		if e.prev >= n { // chains fall
			e.prev = 0
		}
		n = max(e.prev, 0)
	}
	if n > 0 {
		x.head.usedSlots++
	}
	if n != old {
		setSlot(page, i%pageSlots, n)
		x.dirty[i/pageSlots] = true
		x.changed = true
	}
	return nil
}

// rawEntry reads an entry behind the end, too.
func (x *file) rawEntry(n int32) (entry, error) {
	var b [entrySize]byte
	if n >= x.room {
		return entry{prev: n}, nil
	}
	if err := readFull(x.f, b[:], x.entryPosition(n)); err != nil {
		return entry{}, fmt.Errorf("read entry of %s: %w", x.name, err)
	}
	return decodeEntry(b[:]), nil
}
