//go:build !linux

package fuzzcost

import "time"

var began = time.Now()

// threadTime returns the elapsed time instead of CPU time, which is measured per thread only on
// Linux.
func threadTime() time.Duration { return time.Since(began) }
