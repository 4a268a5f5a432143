package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

func TestMemoryIsBoundedAndGivesSpaceBack(t *testing.T) {
	m := NewMemory(4 * chunkSize)
	if err := m.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	f, err := m.Create("/data/a")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatal("a hole takes space:", err)
	}
	if _, err := f.WriteAt(make([]byte, 4*chunkSize), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{1}, 5*chunkSize); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("beyond the bound: %v", err)
	}
	if u, err := m.Usage("/"); err != nil || u.Free != 0 {
		t.Fatal(u, err)
	}
	if err := m.Remove("/data/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{1}, 5*chunkSize); err != nil {
		t.Fatal("a removed file that is open cannot be written:", err)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if u, err := m.Usage("/"); err != nil || u.Free != 4*chunkSize {
		t.Fatal("space is lost or won:", u, err)
	}
}

func TestMemoryKnowsNames(t *testing.T) {
	m := NewMemory(1 << 20)
	if _, err := m.Create("/no/dir"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := errors.Join(m.MkdirAll("/a/b"), m.MkdirAll("/a/c")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create("/a/b/f"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create("/a/b/f"); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	if err := m.Remove("/a/b"); err == nil {
		t.Fatal("a directory that is not empty is removed")
	}
	if err := m.Rename("/a/b", "/a/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open("/a/d/f"); err != nil {
		t.Fatal(err)
	}
	entries, err := m.ReadDir("/a")
	if err != nil || len(entries) != 2 || entries[0].Name != "c" || !entries[1].Dir {
		t.Fatal(entries, err)
	}
}

// What is read is what was written, whatever the order of writes and cuts.
func TestMemoryFileIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory(1 << 30)
		f, err := m.Create("/f")
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			at := rapid.IntRange(0, 3*chunkSize).Draw(t, "at")
			if rapid.Bool().Draw(t, "cut") {
				if err := f.Truncate(int64(at)); err != nil {
					t.Fatal(err)
				}
				want = append(want, make([]byte, max(at-len(want), 0))...)[:at]
				continue
			}
			b := bytes.Repeat([]byte{byte(rapid.IntRange(1, 255).Draw(t, "byte"))}, rapid.IntRange(0, 2*chunkSize).Draw(t, "length"))
			if _, err := f.WriteAt(b, int64(at)); err != nil {
				t.Fatal(err)
			}
			if len(b) > 0 {
				want = append(want, make([]byte, max(at+len(b)-len(want), 0))...)
				copy(want[at:], b)
			}
		}
		got := make([]byte, len(want)+10)
		n, err := f.ReadAt(got, 0)
		if !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], want) {
			t.Fatalf("read %d of %d bytes, %v", n, len(want), err)
		}
	})
}
