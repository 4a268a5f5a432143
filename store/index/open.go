package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
)

// Bounds is what the log and the checkpoint say about the index at start.
type Bounds struct {
	LogBegin, LogEnd int64
	// Clean: the store was closed cleanly. Else slots may run ahead of a header.
	Clean bool
	// Foreign: after an unclean end, the files may be another product's, which promises no order of its writes. Then the
	// newest file is checked entry by entry, and its slots are made anew.
	Foreign bool
}

// Open opens the files. Resume tells from where on the store must submit records again. It starts no goroutine.
func Open(cfg Config, b Bounds, logger *slog.Logger) (*Index, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	x := &Index{cfg: cfg, logger: logger, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	entries, err := cfg.FS.ReadDir(cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list index: %w", err)
	}
	for _, e := range entries {
		if e.Dir || !isFileName(e.Name) {
			continue
		}
		if err := x.open(e.Name, e.Size); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	if err := x.recover(b); err != nil {
		return nil, errors.Join(fmt.Errorf("recover index: %w", err), x.Close())
	}
	x.resume = -1
	if n := len(x.files); n > 0 && x.files[n-1].head.endOffset > 0 || n > 0 && x.files[n-1].head.next > 1 {
		x.resume = x.files[n-1].head.endOffset
	}
	x.end = max(x.resume, b.LogBegin)
	x.covered.Store(x.end)
	return x, nil
}

// Resume is the offset from which on records must be submitted. The record there may be known already, in part or whole.
func (x *Index) Resume() int64 { return max(x.resume, 0) }

func (x *Index) open(name string, size int64) error {
	full := x.cfg.Dir + "/" + name
	want := fileSize(x.cfg.Slots, x.cfg.Entries)
	if size > want {
		x.logger.Warn("index file left alone: its length is not what maxHashSlotNum and maxIndexNum give",
			slog.String("file", full), slog.Int64("size", size), slog.Int64("expected", want))
		return nil
	}
	f, err := x.cfg.FS.Open(full)
	if err != nil {
		return fmt.Errorf("open index file: %w", err)
	}
	file := newFile(name, f, x.cfg.Slots, x.cfg.Entries)
	b := make([]byte, headerSize)
	err = readFull(f, b, 0)
	if err == nil && size < want { // made, or damaged: a missing end reads as zeros
		err = f.Truncate(want)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open index file %s: %w", name, err), f.Close())
	}
	file.head = decodeHeader(b)
	file.head.next = min(max(file.head.next, 1), x.cfg.Entries)
	file.inFile = file.head.next
	x.files = append(x.files, file)
	return nil
}

// recover makes the newest file consistent and drops what points behind the log.
func (x *Index) recover(b Bounds) error {
	if err := x.dropDamaged(b); err != nil {
		return err
	}
	if len(x.files) == 0 {
		return nil
	}
	if !b.Clean {
		last := x.files[len(x.files)-1]
		next := last.head.next
		var err error
		if b.Foreign {
			next, err = last.checkEntries(b.LogEnd)
		}
		if err == nil && b.Foreign {
			err = last.rebuildSlots(next)
		} else if err == nil {
			err = last.cut(next)
		}
		if err != nil {
			return err
		}
	}
	return x.CutAbove(b.LogEnd)
}

// dropDamaged removes the first file that is visibly damaged and all behind it, whose keys are found in the log again. A
// foreign newest file that a crash caught is looked at later, entry by entry.
func (x *Index) dropDamaged(b Bounds) error {
	for i, f := range x.files {
		last := i == len(x.files)-1
		if last && b.Foreign && !b.Clean {
			return nil
		}
		why, err := f.flaw(last)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		x.logger.Warn("index file is damaged; it and those behind are built anew", slog.String("file", f.name), slog.String("reason", why))
		for _, f := range x.files[i:] {
			if err := errors.Join(f.f.Close(), x.cfg.FS.Remove(x.cfg.Dir+"/"+f.name)); err != nil {
				return fmt.Errorf("remove damaged index file %s: %w", f.name, err)
			}
		}
		x.files, x.dirUnsynced = x.files[:i], true
		return nil
	}
	return nil
}

// flaw looks at the places where a file that lost bytes shows it: its head, its last entry, and the slot of that.
func (x *file) flaw(last bool) (string, error) {
	if !last && !x.full() {
		return "it is not full, but others follow", nil
	}
	if x.head.next <= 1 {
		return "", nil
	}
	n := x.head.next - 1
	e, err := x.entry(n)
	if err != nil {
		return "", err
	}
	if e.physical != x.head.endOffset || e.hash < 0 {
		return "its last entry is not what its head says", nil
	}
	newest, err := x.slot(int(e.hash) % x.slots)
	if err != nil {
		return "", err
	}
	if newest < n { // after a crash slots may run ahead
		return "the slot of its last entry points elsewhere", nil
	}
	return "", nil
}

// checkEntries counts the entries at the front that can be true: offsets grow and stay within the log.
func (x *file) checkEntries(logEnd int64) (next int32, err error) {
	physical := int64(0)
	next = 1
	err = x.scan(x.head.next, func(n int32, e entry) bool {
		if e.physical < physical || e.physical >= logEnd || e.hash < 0 || e.seconds < 0 || (e.hash == 0 && e.physical == 0 && n > 1) {
			return false
		}
		physical, next = e.physical, n+1
		return true
	})
	return next, err
}

// scan visits the entries that are in the file, 1 up to end, block by block.
func (x *file) scan(end int32, visit func(n int32, e entry) bool) error {
	b := make([]byte, entryBufferMax/entrySize*entrySize)
	for n := int32(1); n < end; {
		block := b[:min(len(b), int(end-n)*entrySize)]
		if err := readFull(x.f, block, x.entryPosition(n)); err != nil {
			return fmt.Errorf("read entries of %s: %w", x.name, err)
		}
		for ; len(block) > 0; block = block[entrySize:] {
			if !visit(n, decodeEntry(block)) {
				return nil
			}
			n++
		}
	}
	return nil
}

// rebuildSlots makes all slots and chains from entries 1 up to next, durably.
func (x *file) rebuildSlots(next int32) error {
	for p := range x.pages {
		x.pages[p] = make([]byte, min(pageSlots, x.slots-p*pageSlots)*slotSize)
		x.dirty[p] = true
	}
	whole := next == x.head.next
	x.head.usedSlots, x.head.next, x.inFile, x.buf = 0, next, 1, nil
	var failed error
	err := x.scan(next, func(n int32, e entry) bool {
		i := int(e.hash) % x.slots
		page := x.pages[i/pageSlots]
		if e.prev = slotAt(page, i%pageSlots); e.prev == 0 {
			x.head.usedSlots++
		}
		setSlot(page, i%pageSlots, n)
		x.buf = e.append(x.buf)
		if len(x.buf) >= entryBufferMax { // behind what the scan has read
			failed = x.writeEntries()
		}
		if !whole {
			x.head.endOffset, x.head.endTime = e.physical, x.head.beginTime+int64(e.seconds)*1000
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	x.changed = true
	return x.sync()
}
