package server

import (
	"context"
	"math"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// The memory limit of the process is the memory in use plus memoryExtra, and a quarter more, but at
// least memoryFloor. Without a limit the heap could grow to five times the live memory (see package
// heap). With thousands of long-lived sockets this would waste memory.
const (
	memoryFloor = 192 << 20
	memorySlack = 4        // divisor: a quarter of the memory in use
	memoryExtra = 16 << 20 // memory that the Go runtime uses
)

// boundMemory frees the memory that only the startup needed, and later the memory that an idle
// process does not need. It keeps the limit close to the memory in use until ctx is done, unless
// GOMEMLIMIT sets a limit.
func boundMemory(ctx context.Context, getenv func(string) string) {
	limited := getenv("GOMEMLIMIT") != ""
	if !limited {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryFloor))
	}

	trimmer := newTrimmer()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	inUse := []runtimemetrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	last := uint64(memoryFloor)
	for seconds := 1; ; seconds++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch {
		case seconds == 1:
			trimmer.start()
		case seconds%trimEvery == 0:
			trimmer.look()
		}

		if limited {
			continue
		}
		runtimemetrics.Read(inUse)
		limit := memoryLimit(inUse[0].Value.Uint64() + inUse[1].Value.Uint64())
		if limit != last {
			debug.SetMemoryLimit(int64(min(limit, math.MaxInt64)))
			last = limit
		}
	}
}

// memoryLimit returns the limit for the memory in use. The limit has coarse steps, so that it
// rarely changes.
func memoryLimit(inUse uint64) uint64 {
	const step = 8 << 20
	limit := inUse + memoryExtra
	limit += limit / memorySlack
	return max(memoryFloor, (limit+step-1)/step*step)
}
