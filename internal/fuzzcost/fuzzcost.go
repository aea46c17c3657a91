// Package fuzzcost fails a fuzz target when an input costs too much.
//
// A parser that meets strangers has a [Bound]: what it may cost at most for an input of n bytes, in
// processor time and in allocated memory. Its fuzz target calls [Bound.Check], which fails if
// the bound is exceeded. Plain tests check the seeds of the target in the same way.
package fuzzcost

import (
	"flag"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A Bound is the most that a parser may cost for one input. The bounds leave room for slow
// machines: they tell a parser whose work is proportional to its input from one whose work is not.
type Bound struct {
	CPU        time.Duration // of any input
	CPUPerByte time.Duration // of each byte of the input, in addition
	Heap       int           // bytes allocated for any input, whether or not they are freed
	PerByte    int           // bytes allocated for each byte of the input, in addition
}

// Parser is the bound of a parser that makes a few passes over a short input, such as a header
// field: 1 ms and 1 µs a byte; 64 KiB and 64 bytes a byte.
var Parser = Bound{CPU: time.Millisecond, CPUPerByte: time.Microsecond, Heap: 64 << 10, PerByte: 64}

// tries is how often an input that exceeds its bound is measured again. The least counts, since
// other processes and the garbage collector can only add to a measurement.
const tries = 8

// A T is the part of testing.TB that [Bound.Check] needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Check runs the parser on an input of n bytes, and fails the test if that exceeds the bound. It
// runs the parser again if it does, so parse must be repeatable. Memory that other goroutines of
// the process allocate counts as well.
func (b Bound) Check(t T, n int, parse func()) {
	t.Helper()
	maxCPU := (b.CPU + time.Duration(n)*b.CPUPerByte) * slowdown()
	maxHeap := uint64(b.Heap + n*b.PerByte + countedLate)

	cpu, heap := measure(parse)
	for range tries {
		if cpu <= maxCPU && heap <= maxHeap {
			return
		}
		againCPU, againHeap := measure(parse)
		cpu, heap = min(cpu, againCPU), min(heap, againHeap)
	}
	if cpu > maxCPU {
		t.Errorf("an input of %d bytes takes %v of processor time, want %v at most", n, cpu, maxCPU)
	}
	if heap > maxHeap {
		t.Errorf("for an input of %d bytes, %d bytes are allocated, want %d at most", n, heap, maxHeap)
	}
}

// countedLate is what earlier work may add to a measurement: small objects are counted when
// their page is full.
const countedLate = 64 << 10

// slowdown returns how much slower instrumented code is: under the race detector, or while the
// fuzzer records which code an input reaches.
var slowdown = sync.OnceValue(func() time.Duration {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				return 20
			}
		}
	}
	if f := flag.Lookup("test.fuzzworker"); f != nil && f.Value.String() == "true" {
		return 4
	}
	return 1
})

// measure returns what one call of parse costs.
func measure(parse func()) (cpu time.Duration, heap uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	heapBefore, cpuBefore := allocated(), threadTime()
	parse()
	return threadTime() - cpuBefore, allocated() - heapBefore
}

// allocated returns how many bytes the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
