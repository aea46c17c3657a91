//go:build !linux

package fuzzcost

import "time"

var began = time.Now()

// threadTime returns the elapsed time, because only Linux can measure the CPU time of a thread.
func threadTime() time.Duration { return time.Since(began) }
