//go:build !linux

package fuzzcost

import "time"

var began = time.Now()

// threadTime returns the time of day instead, since only Linux measures a thread.
func threadTime() time.Duration { return time.Since(began) }
