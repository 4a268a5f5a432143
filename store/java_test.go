package store_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

// javaStore copies a store that RocketMQ wrote to a directory of the test.
func javaStore(t *testing.T, name string) store.Config {
	t.Helper()
	cfg := config(nil)
	cfg.RootDir = t.TempDir() + "/store"
	require.NoError(t, os.CopyFS(cfg.RootDir, os.DirFS(filepath.Join("testdata", name))))
	cfg.IndexTags = name[:10] == "java-5.5.0"
	return cfg
}

var javaStores = []string{"java-5.5.0-killed", "java-5.5.0-clean", "java-4.9.7-killed", "java-4.9.7-clean"}

// javaRecords decodes the log of a store that RocketMQ wrote.
func javaRecords(t *testing.T, name string) []message.Record {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name, "commitlog", "00000000000000000000"))
	require.NoError(t, err)
	var list []message.Record
	for len(b) > 0 {
		r, err := message.DecodeRecord(b, true)
		if err != nil {
			break
		}
		list = append(list, r)
		b = b[r.Size:]
	}
	require.Greater(t, len(list), 30)
	return list
}

type queueKey struct {
	topic string
	id    int32
}

// byQueue sorts the records that have a place in a queue.
func byQueue(records []message.Record) map[queueKey][]message.Record {
	queues := map[queueKey][]message.Record{}
	for _, r := range records {
		if t := r.SysFlag.Transaction(); t == message.TransactionPreparedFlag || t == message.TransactionRollback {
			continue
		}
		k := queueKey{string(r.Topic), r.QueueID}
		queues[k] = append(queues[k], r)
	}
	return queues
}

// tree reads all files below dir.
func tree(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = b
		return err
	}))
	return files
}

func checkJava(t *testing.T, s running, name string) {
	t.Helper()
	all := javaRecords(t, name)
	queues := byQueue(all)
	topics := map[string][]int32{}
	for k, want := range queues {
		topics[k.topic] = append(topics[k.topic], k.id)
		got := readAll(t, s.Store, k.topic, k.id)
		require.Len(t, got, len(want), "%v", k)
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	}
	for topic, ids := range s.Topics() {
		slices.Sort(ids)
		require.ElementsMatch(t, topics[topic], ids, topic)
	}
	require.Len(t, s.Topics(), len(topics))
	for _, r := range all {
		v, err := s.RecordAt(r.PhysicalOffset)
		require.NoError(t, err)
		v.Release()
		unique := r.Properties.Get(message.UniqueKey)
		if unique == "" || r.SysFlag.Transaction() == message.TransactionRollback {
			continue
		}
		found, err := s.Query(string(r.Topic), unique, 64, 0, math.MaxInt64)
		require.NoError(t, err)
		at := false
		for _, v := range found.Views {
			f, err := message.DecodeRecord(v.Bytes, true)
			require.NoError(t, err)
			at = at || f.PhysicalOffset == r.PhysicalOffset
		}
		require.True(t, at, "record %d by key %s", r.PhysicalOffset, unique)
		found.Release()
	}
}

func TestJavaStoresOpenMessageByMessage(t *testing.T) {
	for _, name := range javaStores {
		t.Run(name, func(t *testing.T) {
			cfg := javaStore(t, name)
			s := run(t, cfg)
			checkJava(t, s, name)
			topics, err := s.ReadConfigFile("topics.json")
			require.NoError(t, err)
			require.Contains(t, string(topics), "FixtureTopic")
			next := appendOne(t, s.Store, testMessage("FixtureOrder", 0, 0))
			require.EqualValues(t, 4, next.QueueOffset)
			s.settled(t)
			s.close(t)
			s = run(t, cfg)
			require.Len(t, readAll(t, s.Store, "FixtureOrder", 0), 5)
			s.close(t)
		})
	}
}

// TestJavaQueuesComeOutByteForByte deletes what is derived and compares what is built from the log with what RocketMQ had
// built (I20): consume queues and index.
func TestJavaQueuesComeOutByteForByte(t *testing.T) {
	for _, name := range javaStores {
		t.Run(name, func(t *testing.T) {
			cfg := javaStore(t, name)
			wantQueues := tree(t, cfg.RootDir+"/consumequeue")
			wantIndex := tree(t, cfg.RootDir+"/index")
			for _, dir := range []string{"consumequeue", "index"} {
				require.NoError(t, os.RemoveAll(cfg.RootDir+"/"+dir))
			}
			s := run(t, cfg)
			checkJava(t, s, name)
			s.close(t)
			require.Equal(t, wantQueues, tree(t, cfg.RootDir+"/consumequeue"))
			got := tree(t, cfg.RootDir+"/index")
			require.Len(t, got, len(wantIndex))
			for _, want := range wantIndex {
				for _, b := range got {
					require.Equal(t, want, b)
				}
			}
		})
	}
}

func TestUnchangedJavaStoreStaysAsItWas(t *testing.T) {
	for _, name := range javaStores {
		t.Run(name, func(t *testing.T) {
			cfg := javaStore(t, name)
			before := tree(t, cfg.RootDir)
			run(t, cfg).close(t)
			after := tree(t, cfg.RootDir)
			for _, kept := range []string{"commitlog", "consumequeue", "index", "config"} {
				require.Equal(t, below(before, kept), below(after, kept))
			}
			require.Len(t, after["checkpoint"], 4096)
			require.NotContains(t, after, "abort")
			modes(t, cfg.RootDir)
		})
	}
}

func below(files map[string][]byte, dir string) map[string][]byte {
	part := map[string][]byte{}
	for name, b := range files {
		if filepath.Dir(name) == dir || len(name) > len(dir) && name[:len(dir)+1] == dir+"/" {
			if filepath.Base(name) != "00000000000000016384" { // prepared ahead
				part[name] = b
			}
		}
	}
	return part
}

func modes(t *testing.T, rootDir string) {
	t.Helper()
	for _, name := range []string{"lock", "quorate-queue-ends"} {
		info, err := os.Stat(rootDir + "/" + name)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
}

func TestFilesOfANewStoreArePrivate(t *testing.T) {
	cfg := config(nil)
	cfg.RootDir = t.TempDir() + "/store"
	s := run(t, cfg)
	appendOne(t, s.Store, testMessage("T", 0, 0))
	s.settled(t)
	require.NoError(t, s.WriteConfigFile("topics.json", []byte("{}")))
	s.close(t)
	require.NoError(t, filepath.WalkDir(cfg.RootDir, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := os.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
}
