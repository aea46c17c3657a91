package recordings_test

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/selvage/selvage/recordings"
)

// BenchmarkIngest stores ten minutes of speech at 8 kHz with one channel. It copies, hashes and
// measures the file, and syncs it to disk.
func BenchmarkIngest(b *testing.B) {
	w := newWorld(b)
	speech := corpusFile(b, "speech_s16_8k.wav")
	file := append(bytes.Clone(speech[:44]), bytes.Repeat(speech[44:], 106)...)
	// The sizes in the header become 0, as in a streamed file. The audio then extends to the end of
	// the file.
	clear(file[4:8])
	clear(file[40:44])
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before) // cannot fail with these arguments

	for b.Loop() {
		rec, _, err := w.upload(b.Context(), string(file), recordings.Description{})
		if err != nil || rec.Levels == nil || rec.Seconds() < 590 {
			b.Fatalf("%d s, %v", rec.Seconds(), err)
		}
	}

	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(used)/1e6/float64(b.N), "cpu-ms/op")
}
