package delay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// fileName and document are RocketMQ's delayOffset.json (PROTOCOL §5.6): level → offset of its next delivery.
const fileName = "delayOffset.json"

type document struct {
	DataVersion protocol.DataVersion `json:"dataVersion"`
	Offsets     map[int]int64        `json:"offsetTable"`
}

// lastFlushTimeout bounds the wait for the log's flush at the stop.
const lastFlushTimeout = 5 * time.Second

// progress is the next offset of each level. Levels that the table no longer has keep their offsets.
type progress struct {
	mu      sync.Mutex
	version protocol.DataVersion
	offsets map[int]int64
	changed bool
}

func (p *progress) load(files Files, levels int) error {
	p.offsets = make(map[int]int64, levels)
	content, err := files.ReadConfigFile(fileName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", fileName, err)
	}
	var d document
	if err := fastjson.Unmarshal(content, &d); err != nil {
		return fmt.Errorf("read %s: %w", fileName, err)
	}
	p.version = d.DataVersion
	maps.Copy(p.offsets, d.Offsets)
	return nil
}

func (p *progress) next(level int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offsets[level]
}

func (p *progress) set(level int, offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, known := p.offsets[level]; known && old == offset || !known && offset == 0 {
		return
	}
	p.offsets[level] = offset
	p.changed = true
}

// copyOf returns the table, with a new version when it changed since the last call.
func (p *progress) copyOf(now time.Time, take bool) (document, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.changed
	if take && changed {
		p.changed = false
		p.version = p.version.Next(now)
	}
	d := document{DataVersion: p.version, Offsets: make(map[int]int64, len(p.offsets))}
	maps.Copy(d.Offsets, p.offsets)
	return d, changed
}

// persist writes the progress once everything delivered up to it is durable, so that no crash can lose a delivery that the
// file calls done.
func (s *Schedule) persist(ctx context.Context) error {
	d, changed := s.progress.copyOf(time.Now(), true)
	if !changed {
		return nil
	}
	err := s.settle(ctx)
	if err == nil {
		var content []byte
		if content, err = fastjson.MarshalIndent(d); err == nil {
			err = s.deps.Files.WriteConfigFile(fileName, content)
		}
	}
	if err != nil {
		s.progress.mu.Lock()
		s.progress.changed = true
		s.progress.mu.Unlock()
		return fmt.Errorf("write %s: %w", fileName, err)
	}
	return nil
}

// settle waits until all that is appended now is durable.
func (s *Schedule) settle(ctx context.Context) error {
	end := s.deps.Durability.Appended().Load()
	s.deps.Durability.RequestFlush()
	return s.deps.Durability.Durable().Wait(ctx, end)
}

// Encoded returns the progress as GET_ALL_DELAY_OFFSET answers it.
func (s *Schedule) Encoded() ([]byte, error) {
	d, _ := s.progress.copyOf(time.Now(), false)
	return fastjson.Marshal(d)
}
