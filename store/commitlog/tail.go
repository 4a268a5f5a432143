package commitlog

import "sync"

// tail holds the newest bytes of the log in memory: a ring of blocks, each for one aligned piece of the log. The appender
// enters a block when the log reaches its piece, which forgets an older one; that must be in the files by then. Bytes are
// read only below the published end and written only above it, so the two never meet within a block.
type tail struct {
	blockSize int64
	blocks    []tailBlock
}

type tailBlock struct {
	mu   sync.RWMutex // held shared to copy out, taken to change what follows
	base int64        // offset of the piece; -1: none
	from int64        // first offset that is really here
	buf  []byte       // made at first use
}

// Bounds of a block: small ones waste less, large ones are crossed less often.
const (
	blockSizeMin = 4 << 10
	blockSizeMax = 1 << 20
	blocksMin    = 4
)

// newTail makes a ring of about size bytes that can hold unitMax bytes which are not yet in the files.
func newTail(size, unitMax int64) *tail {
	size = max(size, unitMax)
	blockSize := int64(blockSizeMin)
	for blockSize < blockSizeMax && size/blockSize > 16 {
		blockSize *= 2
	}
	n := max((size+blockSize-1)/blockSize+2, blocksMin) // a unit may begin and end inside a block
	t := &tail{blockSize: blockSize, blocks: make([]tailBlock, n)}
	t.reset(0)
	return t
}

// reset forgets everything; the log goes on at offset.
func (t *tail) reset(offset int64) {
	for i := range t.blocks {
		b := &t.blocks[i]
		b.mu.Lock()
		b.base, b.from = -1, 0
		b.mu.Unlock()
	}
	if offset%t.blockSize != 0 {
		t.enter(offset-offset%t.blockSize, offset)
	}
}

func (t *tail) block(offset int64) *tailBlock {
	return &t.blocks[offset/t.blockSize%int64(len(t.blocks))]
}

func (t *tail) enter(base, from int64) {
	b := t.block(base)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf == nil {
		b.buf = make([]byte, t.blockSize)
	}
	b.base, b.from = base, from
}

// reserve enters the blocks of [from, to), unless that would forget bytes at or above written: then it returns false.
// from is the end of the log. Only the appender calls it.
func (t *tail) reserve(from, to, written int64) bool {
	if oldest := (to-1)/t.blockSize - int64(len(t.blocks)) + 1; oldest > 0 && written < oldest*t.blockSize {
		return false
	}
	base := (from + t.blockSize - 1) / t.blockSize * t.blockSize
	for ; base < to; base += t.blockSize {
		if t.block(base).base != base {
			t.enter(base, base)
		}
	}
	return true
}

// slot is the memory of [offset, offset+n) when it lies in one block, else nil. Only for the appender, after reserve.
func (t *tail) slot(offset, n int64) []byte {
	at := offset % t.blockSize
	if at+n > t.blockSize {
		return nil
	}
	return t.block(offset).buf[at : at+n : at+n]
}

// put copies p to offset. Only for the appender, after reserve.
func (t *tail) put(p []byte, offset int64) {
	for len(p) > 0 {
		n := copy(t.block(offset).buf[offset%t.blockSize:], p)
		p, offset = p[n:], offset+int64(n)
	}
}

// zero clears n bytes at offset. Only for the appender, after reserve.
func (t *tail) zero(offset, n int64) {
	for n > 0 {
		at := offset % t.blockSize
		piece := min(n, t.blockSize-at)
		clear(t.block(offset).buf[at : at+piece])
		offset, n = offset+piece, n-piece
	}
}

// unwritten is the memory from offset up to limit or the end of its block. Only for the writer, with offset at or above
// what is written: such a block cannot be forgotten meanwhile.
func (t *tail) unwritten(offset, limit int64) []byte {
	at := offset % t.blockSize
	return t.block(offset).buf[at:min(t.blockSize, at+limit-offset)]
}

// read copies to p what is here from offset on, and returns how much: less than len(p) when a block is not here any more.
// All of it must be below the published end.
func (t *tail) read(p []byte, offset int64) int {
	done := 0
	for done < len(p) {
		b := t.block(offset)
		at := offset % t.blockSize
		b.mu.RLock()
		if b.base != offset-at || offset < b.from {
			b.mu.RUnlock()
			break
		}
		n := copy(p[done:], b.buf[at:])
		b.mu.RUnlock()
		done, offset = done+n, offset+int64(n)
	}
	return done
}

// has tells whether offset is still in memory.
func (t *tail) has(offset int64) bool {
	b := t.block(offset)
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.base == offset-offset%t.blockSize && offset >= b.from
}
