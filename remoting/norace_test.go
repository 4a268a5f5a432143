//go:build !race

package remoting_test

const raceEnabled = false
