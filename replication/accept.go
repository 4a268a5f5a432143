package replication

import (
	"syscall"
	"time"
)

// errTooManyFiles is what Accept meets at the limit of open files: the port recovers by itself when files are closed.
const errTooManyFiles = syscall.EMFILE

const acceptPause = 100 * time.Millisecond
