package namesrv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/internal/vfs"
)

// OrderTopicNamespace is the namespace whose entries are the order configurations of topics (NamesrvUtil).
const OrderTopicNamespace = "ORDER_TOPIC_CONFIG"

// Bounds of one key-value entry.
const (
	kvNameBytesMax  = 255
	kvValueBytesMax = 64 << 10
)

var (
	errKVName = errors.New("namespace and key must be 1 to 255 printable bytes, the value at most 64 KiB")
	errKVFull = errors.New("there are too many entries")
)

// kvTables are entries by namespace and key; a published value is never changed.
type kvTables map[string]map[string]string

// kvFile is the content of kvConfig.json (KVConfigSerializeWrapper).
type kvFile struct {
	ConfigTable kvTables `json:"configTable"`
}

// kvStore keeps the key-value settings and their file. Readers never wait; writers take turns, since a change counts only
// once it is on disk.
type kvStore struct {
	fs         vfs.FS
	path       string // "": memory only
	entriesMax int
	turn       chan struct{}
	tables     atomic.Pointer[kvTables]
}

// openKV reads the file; one that cannot be read or parsed is an error, not an empty table.
func openKV(fsys vfs.FS, path string, entriesMax int) (*kvStore, error) {
	k := &kvStore{fs: fsys, path: path, entriesMax: entriesMax, turn: make(chan struct{}, 1)}
	var file kvFile
	if path != "" {
		content, err := readFile(fsys, path)
		if err != nil {
			return nil, err
		}
		if len(content) > 0 {
			if err := fastjson.Unmarshal(content, &file); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
		}
	}
	if file.ConfigTable == nil {
		file.ConfigTable = kvTables{}
	}
	k.tables.Store(&file.ConfigTable)
	return k, nil
}

func (k *kvStore) get(namespace, key string) (string, bool) {
	v, ok := (*k.tables.Load())[namespace][key]
	return v, ok
}

// namespace returns the entries of a namespace, not to be changed.
func (k *kvStore) namespace(namespace string) (map[string]string, bool) {
	t, ok := (*k.tables.Load())[namespace]
	return t, ok
}

func (k *kvStore) put(ctx context.Context, namespace, key, value string) error {
	if !validKV(namespace) || !validKV(key) || len(value) > kvValueBytesMax {
		return errKVName
	}
	return k.change(ctx, func(t kvTables) error {
		entries := 0
		for _, of := range t {
			entries += len(of)
		}
		if _, there := t[namespace][key]; !there && entries >= k.entriesMax {
			return errKVFull
		}
		of := maps.Clone(t[namespace])
		if of == nil {
			of = map[string]string{}
		}
		of[key] = value
		t[namespace] = of
		return nil
	})
}

// remove forgets an entry; a namespace that has none left stays, as in RocketMQ.
func (k *kvStore) remove(ctx context.Context, namespace, key string) error {
	if _, there := k.get(namespace, key); !there {
		return nil
	}
	return k.change(ctx, func(t kvTables) error {
		of := maps.Clone(t[namespace])
		delete(of, key)
		t[namespace] = of
		return nil
	})
}

// change edits a copy of the outer map, persists it and publishes it.
func (k *kvStore) change(ctx context.Context, edit func(kvTables) error) error {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	next := maps.Clone(*k.tables.Load())
	if err := edit(next); err != nil {
		return err
	}
	if k.path != "" {
		content, err := fastjson.Marshal(kvFile{next})
		if err != nil {
			return err
		}
		if err := replaceFile(k.fs, k.path, content); err != nil {
			return err
		}
	}
	k.tables.Store(&next)
	return nil
}

func validKV(name string) bool {
	return name != "" && len(name) <= kvNameBytesMax &&
		strings.IndexFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) < 0
}
