package fuzzcost

import (
	"syscall"
	"time"
)

// threadTime returns the CPU time of the current thread (getrusage(2), RUSAGE_THREAD).
func threadTime() time.Duration {
	const thread = 1
	var used syscall.Rusage
	if err := syscall.Getrusage(thread, &used); err != nil {
		panic(err) // cannot happen, because both arguments are valid
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
