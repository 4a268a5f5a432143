package sim

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this seed alone")
	seedsFlag = flag.Int("seeds", 300, "how many seeds to run")
)

// worth says whether a run proves anything: enough acknowledged, and a fault had an effect.
func (w *World) worth() error {
	bitten := 0
	for _, n := range w.bitten {
		bitten += n
	}
	if w.history.acks < 200 || bitten == 0 {
		return fmt.Errorf("void run: %d acknowledged, %d faults bit", w.history.acks, bitten)
	}
	return nil
}

func TestSeeds(t *testing.T) {
	first, count := uint64(1), *seedsFlag
	if testing.Short() { // under the race detector: one goroutine has no races, the seeds are run without it
		count = min(count, 20)
	}
	if *seedFlag > 0 {
		first, count = *seedFlag, 1
	}
	valid, acks, degraded := 0, 0, 0
	bitten := map[string]int{}
	for seed := first; valid < count; seed++ {
		require.Less(t, seed, first+uint64(20*count), "too many void runs")
		w := New(Expand(seed))
		if err := w.Run(); err != nil {
			t.Fatalf("seed %d: %v\noptions %+v", seed, err, w.Options)
		}
		if *seedFlag == 0 && w.worth() != nil {
			continue
		}
		valid++
		acks += w.history.acks
		degraded += w.history.degraded
		for name, n := range w.bitten {
			bitten[name] += n
		}
		if seed%100 == 1 { // one in a hundred twice: the same seed is the same run
			again := New(Expand(seed))
			require.NoError(t, again.Run())
			require.Equal(t, w.Hash(), again.Hash(), "seed %d does not replay", seed)
		}
	}
	t.Logf("%d runs, %d acknowledged, %d of them degraded, faults that bit: %v", valid, acks, degraded, bitten)
	if *seedFlag == 0 && !testing.Short() {
		require.Positive(t, degraded)
		for _, sometimes := range []string{"kill", "lost bytes", "cut", "stall", "fsync error", "disk full", "delay", "truncation", "replica refuses"} {
			require.Positive(t, bitten[sometimes], "%s never happened", sometimes)
		}
	}
}

func TestEveryMutantIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine; make test runs the mutants")
	}
	for _, m := range []Mutant{AckOnReceipt, CountConnections, IgnoreGap, RetryFsync, HeadOfLine, PhantomReads, KeepTail} {
		t.Run(string(m), func(t *testing.T) {
			for seed := uint64(1); seed <= 400; seed++ {
				o := Expand(seed)
				o.Mutant = m
				if err := New(o).Run(); err != nil {
					t.Logf("caught by seed %d: %v", seed, err)
					return
				}
			}
			t.Fatal("survived 400 seeds: the checkers have a hole")
		})
	}
}
