package commitlog

import (
	"bytes"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/segment"
)

// Recovery says where to look and what to believe.
type Recovery struct {
	// From is where the scan begins: a record's offset or a file's; what lies before is taken as good. Below Begin means
	// Begin. Work is bounded by the bytes from here to the end of the log plus one file.
	From int64
	// Durable is an end of the log that was once on disk for sure (from a checkpoint). Nothing below it may be cut.
	Durable int64
	// PowerLoss tells that the machine may have lost power since the log was last written. Then written, unsynced bytes may
	// be on disk in any order, and a bad record with good ones close behind it is a torn tail. Otherwise it is corruption.
	PowerLoss bool
	// CheckCRC verifies body checksums (checkCRCOnRecover).
	CheckCRC bool
}

// Recovered is what Recover found.
type Recovered struct {
	From, End int64 // scanned
	Records   int64
	// Torn tells why the scan ended at End although there were bytes behind it; "" after a clean stop. What followed End
	// within the unsynced part is gone.
	Torn string
	// LastStoreTimestamp is of the last record of the scan, 0 without one.
	LastStoreTimestamp int64
}

// CorruptError reports damage that must not be repaired by cutting. It matches ErrCorrupt.
type CorruptError struct {
	Offset int64  // of the bad record
	File   string // that holds it, "" when none does
	Reason string // why it is bad, and why it is no torn tail
}

func (e *CorruptError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("commitlog: corrupt at offset %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("commitlog: corrupt at offset %d (file %s): %s", e.Offset, e.File, e.Reason)
}

// Is makes the error match ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Recover scans the log, calls each for every record in order, cuts a torn tail durably, and makes what stays durable. A
// bad record below r.Durable, or followed by good ones that a crash cannot explain, gives a CorruptError: nothing is cut,
// and the Log serves neither reads nor appends. record aliases a buffer that is used again. It is to be called once,
// before Run; each's error ends it.
func (l *Log) Recover(r Recovery, each func(offset int64, record *message.Record) error) (Recovered, error) {
	begin, end := l.files.Bounds()
	from := max(r.From, begin)
	if from > end {
		return Recovered{}, &CorruptError{Offset: from, Reason: fmt.Sprintf("recovery begins there, the files end at %d", end)}
	}
	found := Recovered{From: from}
	scan := scanner{log: l, at: from, durable: r.Durable, checkCRC: r.CheckCRC}
	for {
		record, err := scan.next()
		if err != nil {
			return found, err
		}
		if record == nil {
			break
		}
		found.Records++
		found.LastStoreTimestamp = record.StoreTimestamp
		if each != nil {
			if err := each(record.PhysicalOffset, record); err != nil {
				return found, err
			}
		}
	}
	found.End = scan.at
	torn, err := l.judge(found.End, scan.bad, r)
	if err != nil {
		return found, err
	}
	found.Torn = torn
	if torn != "" {
		l.logger.Warn("torn tail cut", slog.Int64("offset", found.End), slog.String("reason", torn))
	}
	if err := l.cut(found.End); err != nil {
		return found, fmt.Errorf("cut commit log at %d: %w", found.End, err)
	}
	if err := l.rewrite(max(from, r.Durable), found.End); err != nil {
		return found, fmt.Errorf("sync recovered commit log: %w", err)
	}
	l.continueAt(found.End)
	return found, nil
}

// rewrite makes [from, to) durable. It writes the bytes again first: after a sync that failed, the system may show bytes
// that it has given up to write, and a sync alone would call them durable.
func (l *Log) rewrite(from, to int64) error {
	v := NewView(int(min(lookWindow, l.cfg.FileSize)))
	defer v.Release()
	for at := from; at < to; {
		s := l.files.Find(at)
		if s == nil {
			return fmt.Errorf("%w: %d", ErrNotFound, at)
		}
		b := v.Bytes[:min(int64(len(v.Bytes)), to-at, s.End()-at)]
		if _, err := s.ReadAt(b, at); err != nil {
			return err
		}
		if err := s.WriteAt(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return l.syncFrom(from, to)
}

// judge decides what the first bad record, at offset at, means. A reason "" is a clean end: only zeros follow.
func (l *Log) judge(at int64, bad string, r Recovery) (torn string, err error) {
	if at < r.Durable {
		return "", &CorruptError{Offset: at, File: l.fileOf(at), Reason: fmt.Sprintf("%s, but the log was durable up to %d", bad, r.Durable)}
	}
	look := at
	if r.PowerLoss {
		look = at + UnsyncedBytesMax
	}
	valid, dirty, err := l.look(at, look)
	if err != nil {
		return "", err
	}
	if valid >= 0 {
		return "", &CorruptError{Offset: at, File: l.fileOf(at), Reason: fmt.Sprintf("%s, but a good record follows at %d", bad, valid)}
	}
	if dirty {
		return bad, nil
	}
	return "", nil
}

// fileOf names the file that holds offset, "" without one.
func (l *Log) fileOf(offset int64) string {
	if s := l.files.Find(offset); s != nil {
		return segment.Name(s.Begin())
	}
	return ""
}

// look tells whether anything but zeros stands at or behind at, and where the first good record at or behind from is, −1
// without one. With maxOffset for from it looks for dirt only.
func (l *Log) look(at, from int64) (valid int64, dirty bool, err error) {
	v := NewView(int(min(lookWindow, l.cfg.FileSize)))
	defer v.Release()
	for _, s := range l.files.Segments() {
		if s.End() <= at {
			continue
		}
		valid, dirtyHere, err := l.lookIn(s, max(at, s.Begin()), from, v.Bytes)
		if err != nil {
			return 0, false, fmt.Errorf("look behind the end: %w", err)
		}
		dirty = dirty || dirtyHere
		if valid >= 0 || dirty && from == maxOffset {
			return valid, dirty, nil
		}
	}
	return -1, dirty, nil
}

func (l *Log) lookIn(s *segment.Segment, at, from int64, window []byte) (valid int64, dirty bool, err error) {
	for pos := at; ; {
		if pos, err = s.NextData(pos); err != nil || pos >= s.End() {
			return -1, dirty, err
		}
		b := window[:min(int64(len(window)), s.End()-pos)]
		if _, err := s.ReadAt(b, pos); err != nil {
			return -1, dirty, err
		}
		dirty = dirty || len(bytes.TrimLeft(b, "\x00")) > 0
		if dirty && from == maxOffset {
			return -1, true, nil
		}
		if valid := l.firstValid(s, b, pos, from); valid >= 0 {
			return valid, true, nil
		}
		if pos+int64(len(b)) >= s.End() {
			return -1, dirty, nil
		}
		// The next window begins a little earlier, for a head that lies across.
		pos += int64(len(b)) - message.BlankSize
	}
}

const lookWindow = 1 << 20

// magicPrefix begins both magic numbers; no filler's.
var magicPrefix = []byte{0xDA, 0xA3, 0x20}

// firstValid returns the offset of the first good record whose head lies in b, which was read from pos on.
func (l *Log) firstValid(s *segment.Segment, b []byte, pos, from int64) int64 {
	for i := 0; ; {
		n := bytes.Index(b[i:], magicPrefix)
		if n < 0 {
			return -1
		}
		i += n + 1
		at := pos + int64(i-1) - 4
		if i-1 < 4 || at < from {
			continue
		}
		size, magic := message.RecordHead(b[i-5:])
		if !message.IsRecordMagic(magic) || size < message.RecordSizeMin || int64(size) > s.End()-at {
			continue
		}
		v := NewView(int(size))
		_, err := s.ReadAt(v.Bytes, at)
		good := false
		if err == nil {
			record, err := message.DecodeRecord(v.Bytes, true)
			good = err == nil && record.PhysicalOffset == at
		}
		v.Release()
		if good {
			return at
		}
	}
}
