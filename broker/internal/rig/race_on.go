//go:build race

package rig

// Race says whether the race detector is on: it makes pools drop things at random, so that nothing can be said about
// allocations.
const Race = true
