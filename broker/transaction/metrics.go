package transaction

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// fileName and document are RocketMQ's config/transactionMetrics: undecided messages by their own topic.
const fileName = "transactionMetrics"

type document struct {
	DataVersion protocol.DataVersion `json:"dataVersion"`
	Counts      map[string]count     `json:"transactionCount"`
}

type count struct {
	Count     int64 `json:"count"`
	Timestamp int64 `json:"timeStamp"`
}

type metrics struct {
	mu      sync.Mutex
	d       document
	changed bool
}

func (m *metrics) load(files Files) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.d.Counts = map[string]count{}
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
	m.d.DataVersion = d.DataVersion
	maps.Copy(m.d.Counts, d.Counts)
	return nil
}

// set takes over the counts of a round; topics without an undecided message stand at zero.
func (m *metrics) set(waiting map[string]int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[string]count{}
	for name := range m.d.Counts {
		next[name] = count{0, now.UnixMilli()}
	}
	for name, n := range waiting {
		next[name] = count{n, now.UnixMilli()}
	}
	changed := len(next) != len(m.d.Counts)
	for name, c := range next {
		if old, ok := m.d.Counts[name]; ok && old.Count == c.Count {
			next[name] = old
			continue
		}
		changed = true
	}
	if changed {
		m.d = document{DataVersion: m.d.DataVersion.Next(now), Counts: next}
		m.changed = true
	}
}

func (m *metrics) save(files Files) error {
	m.mu.Lock()
	d, changed := m.d, m.changed
	m.changed = false
	m.mu.Unlock()
	if !changed {
		return nil
	}
	content, err := fastjson.Marshal(d)
	if err == nil {
		err = files.WriteConfigFile(fileName, content)
	}
	if err != nil {
		m.mu.Lock()
		m.changed = true
		m.mu.Unlock()
		return fmt.Errorf("write %s: %w", fileName, err)
	}
	return nil
}

// Waiting returns the undecided messages by topic, as the last round counted them.
func (t *Transactions) Waiting() map[string]int64 {
	if m := t.waiting.Load(); m != nil {
		return maps.Clone(*m)
	}
	return nil
}
