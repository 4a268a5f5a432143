package offset

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

const fileName = "consumerOffset.json"

// Content is consumerOffset.json and the body of GET_ALL_CONSUMER_OFFSET (RocketMQ ConsumerOffsetSerializeWrapper). Keys of
// OffsetTable are topic@group.
type Content struct {
	DataVersion protocol.DataVersion       `json:"dataVersion"`
	OffsetTable map[string]map[int32]int64 `json:"offsetTable"`
}

// Content returns a snapshot of all committed offsets.
func (t *Table) Content() Content {
	c := Content{DataVersion: *t.version.Load(), OffsetTable: map[string]map[int32]int64{}}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for topic, groups := range t.progress {
		for group, p := range groups {
			if offsets := p.offsets(); len(offsets) > 0 {
				c.OffsetTable[topic+"@"+group] = offsets
			}
		}
	}
	return c
}

// Load reads config/consumerOffset.json; a missing file is an empty table.
func (t *Table) Load() error {
	b, err := t.files.ReadConfigFile(fileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load consumer offsets: %w", err)
	}
	if len(b) == 0 {
		return nil
	}
	var c Content
	if err := fastjson.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("load consumer offsets: %s: %w", fileName, err)
	}
	t.version.Store(&c.DataVersion)
	for key, offsets := range c.OffsetTable {
		topic, group, ok := strings.Cut(key, "@")
		if !ok || topic == "" || group == "" {
			return fmt.Errorf("load consumer offsets: %s: key %q is not topic@group", fileName, key)
		}
		for id, offset := range offsets {
			if q := t.make(group, topic, id); q != nil {
				q.committed.Store(offset)
			}
		}
	}
	return nil
}

// Persist writes config/consumerOffset.json if something changed since the last time.
func (t *Table) Persist() error {
	t.saving.Lock()
	defer t.saving.Unlock()
	changes := t.changes.Load()
	if changes == t.persisted.Load() {
		return nil
	}
	b, err := fastjson.MarshalIndent(t.Content())
	if err != nil {
		return fmt.Errorf("persist consumer offsets: %w", err)
	}
	if err := t.files.WriteConfigFile(fileName, b); err != nil {
		return fmt.Errorf("persist consumer offsets: %w", err)
	}
	t.persisted.Store(changes)
	return nil
}
