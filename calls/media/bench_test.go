package media_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/calls/media"
)

// BenchmarkSetup measures the cost of setting up a leg with one media section, from the offer to
// the SRTP keys. It reports the CPU time of the engine and its client together, and the memory of
// the engine.
func BenchmarkSetup(b *testing.B) {
	e, err := media.New(media.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	offer := lightOffer("")
	before := memory()

	cpu := processorTime()
	for range b.N {
		c := newLight(b, e, offer)
		if err := c.connect(); err != nil {
			b.Fatal(err)
		}
		_ = c.handshake.Close() // closes only the queue and sends no close alert, so the engine keeps the leg
		_ = c.conn.Close()
	}
	b.ReportMetric(float64(processorTime()-cpu)/float64(time.Millisecond)/float64(b.N), "cpu-ms/leg")
	b.StopTimer()
	waitFor(b, "all keys", func() bool { return e.Stats().ConnectedUDP == uint64(b.N) })
	b.ReportMetric(float64(memory()-before)/1024/float64(b.N), "KiB/leg")
}

// memory returns the bytes of heap and stacks in use.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// processorTime returns the CPU time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
