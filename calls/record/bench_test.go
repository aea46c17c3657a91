package record

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings/wav"
)

// BenchmarkRender measures rendering a minute of a call, from its spool to the bytes of its WAV
// file.
func BenchmarkRender(b *testing.B) {
	for _, codec := range []string{"opus", "celt", "G722", "PCMU"} {
		b.Run(codec, func(b *testing.B) {
			left := stream{codec: codec, samples: voice(1, 60), jitter: 20 * time.Millisecond}
			right := stream{codec: codec, samples: voice(2, 60), jitter: 20 * time.Millisecond}
			p := spoolOf(b, nil, left.packets(b, calls.CallerSide), right.packets(b, calls.CalleeSide))
			b.ReportAllocs()
			before := processorTime(b)

			for b.Loop() {
				plan, err := survey(p.file)
				if err != nil {
					b.Fatal(err)
				}
				m, err := newMixer(p.file, plan)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, wav.NewView(m)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/min")
			b.ReportMetric(float64(p.offset)/60, "spool-B/s")
		})
	}
}

// processorTime returns the CPU time that this process has spent in user mode.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano())
}
