//go:build race

package store_test

// raceEnabled: the race detector makes pools forget at random, so that allocations cannot be counted.
const raceEnabled = true
