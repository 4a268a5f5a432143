package checkpoint

import "golang.org/x/sys/unix"

// setLock takes a lock that belongs to the open file, so that two stores in one process exclude each other as well; against
// RocketMQ's process lock it conflicts all the same.
const setLock = unix.F_OFD_SETLK
