package server

import (
	"context"
	"math"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// What the process may use before it is collected more often, and how much more
// than what is in use, where that is not enough. Thousands of open sockets live
// for long: five times their memory would be for nothing.
const (
	memoryFloor = 192 << 20
	memorySlack = 4        // a quarter
	memoryExtra = 16 << 20 // what the runtime itself needs
)

// boundMemory returns back what the start needed, and keeps the memory of the process near
// what is in use, until ctx ends, unless GOMEMLIMIT bounds it.
func boundMemory(ctx context.Context, getenv func(string) string) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(time.Second):
		debug.FreeOSMemory()
	}
	if getenv("GOMEMLIMIT") != "" {
		return
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryFloor))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	inUse := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for last := uint64(memoryFloor); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runtimemetrics.Read(inUse)
		if limit := memoryLimit(inUse[0].Value.Uint64() + inUse[1].Value.Uint64()); limit != last {
			debug.SetMemoryLimit(int64(min(limit, math.MaxInt64)))
			last = limit
		}
	}
}

// memoryLimit returns the limit for what is in use, in steps, so that it does not
// change all the time.
func memoryLimit(inUse uint64) uint64 {
	const step = 8 << 20
	limit := inUse + memoryExtra
	limit += limit / memorySlack
	return max(memoryFloor, (limit+step-1)/step*step)
}
