// Package fuzzcost makes a fuzz target fail if an input costs too much.
//
// A parser that reads untrusted input has a [Bound]: the most CPU time and allocated memory that an
// input of n bytes may cost. Its fuzz target calls [Bound.Check], which fails the test if the bound
// is exceeded. Ordinary test runs check the seeds of the target in the same way.
package fuzzcost

import (
	"flag"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A Bound is the maximum cost of one input for a parser. Bounds can leave room for slow machines, because
// they only need to catch parsers whose work is not proportional to the length of the input.
type Bound struct {
	CPU        time.Duration // CPU time allowed for any input
	CPUPerByte time.Duration // CPU time allowed in addition for each byte of the input
	Heap       int           // bytes that may be allocated for any input, whether or not they are freed
	PerByte    int           // bytes that may be allocated in addition for each byte of the input
}

// Parser is the bound for a parser that makes a few passes over a short input, such as a header
// field. It allows 1 ms plus 1 µs per byte, and 64 KiB plus 64 bytes per byte.
var Parser = Bound{CPU: time.Millisecond, CPUPerByte: time.Microsecond, Heap: 64 << 10, PerByte: 64}

// tries is how many times an input that exceeds its bound is measured again. The lowest result
// counts, since other processes and the garbage collector can only make a result higher.
const tries = 8

// A T is the part of testing.TB that [Bound.Check] needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Check calls parse, which parses an input of n bytes, and fails the test if the call exceeds the
// bound. Check may repeat the call, so parse must be repeatable. The measurement includes memory
// that other goroutines allocate at the same time.
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
		t.Errorf("an input of %d bytes takes %v of CPU time, want at most %v", n, cpu, maxCPU)
	}
	if heap > maxHeap {
		t.Errorf("for an input of %d bytes, %d bytes are allocated, want at most %d", n, heap, maxHeap)
	}
}

// countedLate is the number of bytes that earlier work may add to a measurement, because the
// runtime counts small objects only when their span is full.
const countedLate = 64 << 10

// slowdown returns how many times slower the code runs if it is instrumented: by the race detector, or by
// the fuzzer, which records coverage.
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

// measure returns the cost of one call of parse.
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
