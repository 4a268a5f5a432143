package offset

import (
	"context"
	"log/slog"
	"time"
)

// Run writes the table every so often, and once more when ctx ends. A write that fails is tried again at the next time: the
// table keeps what changed.
func (t *Table) Run(ctx context.Context, every time.Duration, logger *slog.Logger) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return t.Persist()
		case <-tick.C:
			if err := t.Persist(); err != nil {
				logger.Error("consumer offsets not written", "error", err)
			}
		}
	}
}
