package commitlog

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/segment"
)

// scanner walks over records. It trusts nothing: magic, lengths, checksum and the offset that a record says it has must
// all be right.
type scanner struct {
	log      *Log
	at       int64
	durable  int64 // records that end above it may be torn by a crash and are looked at more closely
	checkCRC bool

	buf    []byte
	bufAt  int64
	record message.Record
	bad    string // why the walk ended at at
}

const scanWindow = 1 << 20

// sectorSize is what a disk writes whole or not at all.
const sectorSize = 512

// next returns the record at at and steps over it, or nil where there is none: bad then says why.
func (sc *scanner) next() (*message.Record, error) {
	for {
		s := sc.log.files.Find(sc.at)
		if s == nil {
			sc.bad = "the files end"
			return nil, nil
		}
		left := s.End() - sc.at
		if left < message.BlankSize {
			sc.bad = "no room for a filler at the end of the file"
			return nil, nil
		}
		b, err := sc.window(s, message.BlankSize)
		if err != nil {
			return nil, err
		}
		size, magic := message.RecordHead(b)
		switch {
		case magic == message.MagicBlank && int64(size) == left:
			sc.at = s.End()
			continue
		case magic == message.MagicBlank:
			sc.bad = fmt.Sprintf("filler of %d bytes where %d are left in the file", size, left)
		case !message.IsRecordMagic(magic):
			sc.bad = fmt.Sprintf("no record: magic %08x", magic)
		case size < message.RecordSizeMin || int64(size) > left:
			sc.bad = fmt.Sprintf("record size %d where %d bytes are left in the file", size, left)
		default:
			return sc.decode(s, int(size))
		}
		return nil, nil
	}
}

func (sc *scanner) decode(s *segment.Segment, size int) (*message.Record, error) {
	b, err := sc.window(s, size)
	if err != nil {
		return nil, err
	}
	unproved := sc.at+int64(size) > sc.durable
	sc.bad = sc.fault(b[:size], unproved)
	if sc.bad != "" {
		return nil, nil
	}
	sc.at += int64(size)
	return &sc.record, nil
}

// fault decodes b into sc.record, and says what is wrong with it.
func (sc *scanner) fault(b []byte, unproved bool) string {
	var err error
	sc.record, err = message.DecodeRecord(b, sc.checkCRC || unproved)
	switch {
	case err != nil:
		return err.Error()
	case sc.record.PhysicalOffset != sc.at:
		return fmt.Sprintf("record says it is at offset %d", sc.record.PhysicalOffset)
	case unproved && sc.sectorMissing(&sc.record):
		return "record with a sector that never reached the disk"
	}
	return ""
}

// sectorMissing tells whether topic or properties, which no checksum covers, lie in a sector of zeros: the file was filled
// with zeros before, so that is how a sector looks which was not written.
func (sc *scanner) sectorMissing(r *message.Record) bool {
	end := sc.at + int64(r.Size)
	properties := end - int64(len(r.Properties))
	topicEnd := properties - 2 // of the length in between, the sum of all lengths tells
	return sc.zeroSector(topicEnd-int64(len(r.Topic)), topicEnd) || sc.zeroSector(properties, end)
}

func (sc *scanner) zeroSector(from, to int64) bool {
	for at := from; at < to; {
		next := min(to, at-at%sc.log.cfg.FileSize%sectorSize+sectorSize)
		if allZero(sc.buf[at-sc.bufAt : next-sc.bufAt]) {
			return true
		}
		at = next
	}
	return false
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// window returns at least n bytes from at on; s holds them.
func (sc *scanner) window(s *segment.Segment, n int) ([]byte, error) {
	if at := sc.at - sc.bufAt; at >= 0 && at+int64(n) <= int64(len(sc.buf)) {
		return sc.buf[at:], nil
	}
	want := int(min(int64(max(n, scanWindow)), s.End()-sc.at))
	if cap(sc.buf) < want {
		sc.buf = make([]byte, want)
	}
	sc.buf, sc.bufAt = sc.buf[:want], sc.at
	m, err := s.ReadAt(sc.buf, sc.at)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("scan commit log at %d", sc.at), err)
	}
	sc.buf = sc.buf[:m]
	if m < n {
		return nil, fmt.Errorf("scan commit log at %d: %d bytes of %d", sc.at, m, n)
	}
	return sc.buf, nil
}
