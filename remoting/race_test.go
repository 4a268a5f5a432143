//go:build race

package remoting_test

// raceEnabled: under the race detector, pools drop things at random.
const raceEnabled = true
