package server

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// An idle process returns memory to the system.
const (
	trimEvery = 2                             // seconds between two calls of look
	idleTime  = trimEvery * time.Second / 100 // maximum CPU time of an idle process between two calls

	minGarbage = 6 << 20  // minimum allocated bytes for a garbage collection
	maxMapped  = 10 << 20 // bytes of mapped files that background work needs
)

// A trimmer returns memory to the system while the process is idle.
type trimmer struct {
	heap      []runtimemetrics.Sample // allocated bytes and live bytes
	used      time.Duration           // CPU time of the process at the last check; 0 if it is unknown
	allocated uint64                  // bytes that were allocated before the last collection
}

func newTrimmer() *trimmer {
	return &trimmer{heap: []runtimemetrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}}
}

// start frees the memory that only the startup needed.
func (t *trimmer) start() {
	runtimemetrics.Read(t.heap)
	t.collect()
	t.used = cpuTime()
}

// look frees memory if the process is idle. It also unmaps the binary, because a garbage collection reads
// most of the binary's tables and so maps them into memory again. Growing stacks do the same between
// collections.
func (t *trimmer) look() {
	before := t.used
	t.used = cpuTime()
	if t.used == 0 || t.used-before > idleTime {
		return
	}

	runtimemetrics.Read(t.heap)
	allocated := t.heap[0].Value.Uint64()
	live := t.heap[1].Value.Uint64()
	switch {
	case allocated-t.allocated > max(minGarbage, live/4):
		t.collect()
	case mappedBytes() > maxMapped:
		_ = unmapBinary()
	}
	t.used = cpuTime()
}

// collect frees unused memory, including objects that a sync.Pool keeps until the second
// collection.
func (t *trimmer) collect() {
	t.allocated = t.heap[0].Value.Uint64()
	runtime.GC()
	debug.FreeOSMemory()
	_ = unmapBinary() // if it fails, the process only uses more memory
}
