package remoting

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// watched is something made of files. Who asks for it looks at the files first, so that renewed ones are in use from the
// next handshake on; a look costs microseconds, a handshake far more. Files that cannot be used leave the old value in place,
// and are complained about once. Safe for concurrent use.
type watched[T any] struct {
	paths    []string
	load     func() (T, error)
	complain func(error) // nil: nobody is told; a peer refuses the old value in time

	mu    sync.Mutex
	value T
	seen  []stamp
}

// stamp tells whether a file has changed. A link is followed, for secrets are often renewed by pointing it elsewhere.
type stamp struct {
	modified time.Time
	size     int64
}

// watch loads for the first time. Empty paths are left out.
func watch[T any](load func() (T, error), complain func(error), paths ...string) (*watched[T], error) {
	w := &watched[T]{paths: slices.DeleteFunc(paths, func(p string) bool { return p == "" }), load: load, complain: complain}
	w.seen = w.stamps()
	var err error
	w.value, err = load()
	return w, err
}

func (w *watched[T]) stamps() []stamp {
	all := make([]stamp, len(w.paths))
	for i, p := range w.paths {
		if info, err := os.Stat(p); err == nil { // a missing file is a change, too
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

func (w *watched[T]) get() T {
	now := w.stamps()
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(now, w.seen) {
		return w.value
	}
	w.seen = now
	value, err := w.load()
	if err != nil {
		if w.complain != nil {
			w.complain(fmt.Errorf("the ones read before stay in use: %w", err))
		}
		return w.value
	}
	w.value = value
	return w.value
}
