package record

import (
	"io"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings/wav"
)

// BenchmarkRender measures a minute of a call, from its spool to the bytes of its WAV.
func BenchmarkRender(b *testing.B) {
	for _, codec := range []string{"opus", "celt", "G722", "PCMU"} {
		b.Run(codec, func(b *testing.B) {
			left := stream{codec: codec, samples: voice(1, 60), jitter: 20 * time.Millisecond}
			right := stream{codec: codec, samples: voice(2, 60), jitter: 20 * time.Millisecond}
			p := spoolOf(b, nil, left.packets(b, calls.CallerSide), right.packets(b, calls.CalleeSide))
			b.ReportAllocs()
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
			b.ReportMetric(float64(p.offset)/60, "spool-B/s")
		})
	}
}
