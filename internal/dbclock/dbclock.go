// Package dbclock follows the clock of a database. All nodes share this clock, so leases and due times
// in the database are compared with it, and not with the clocks of the nodes.
package dbclock

import (
	"context"
	"sync/atomic"
	"time"
)

// A Clock returns the approximate time of a database's clock. Its zero value returns the time of this
// machine until the first call of Read. Its methods are safe for concurrent use.
type Clock struct{ last atomic.Pointer[reading] }

// A reading is a time of the database's clock, and this machine's time when it was read.
type reading struct{ theirs, ours time.Time }

// Read reads the database's clock.
func (c *Clock) Read(ctx context.Context, clock func(context.Context) (time.Time, error)) error {
	before := time.Now()
	theirs, err := clock(ctx)
	if err != nil {
		return err
	}
	// Assume that the clock was read halfway through the call.
	c.last.Store(&reading{theirs, before.Add(time.Since(before) / 2)})
	return nil
}

// maxJump is how far this machine's wall clock and monotonic clock may diverge between two readings.
const maxJump = time.Second

// Jumped reports whether this machine's clock was set since the last reading, or the machine was
// suspended. The monotonic clock does not count the time of a suspension, so Now may be behind until
// the next reading.
func (c *Clock) Jumped() bool {
	r := c.last.Load()
	if r == nil {
		return false
	}
	now := time.Now()
	monotonic := now.Sub(r.ours)
	wall := now.Round(0).Sub(r.ours.Round(0))
	return (wall - monotonic).Abs() > maxJump
}

// Now returns the last reading plus the time since then. That time is monotonic, so Now stays right if
// this machine's clock is set.
func (c *Clock) Now() time.Time {
	r := c.last.Load()
	if r == nil {
		return time.Now()
	}
	return r.theirs.Add(time.Since(r.ours))
}
