// Package compat runs unchanged RocketMQ clients and tools against the binary, and RocketMQ's own servers beside it.
package compat
