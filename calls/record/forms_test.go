package record

import (
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings"
)

// recordAudio records a call in which both sides speak for one second. It returns the samples of
// the recording.
func (w *world) recordAudio(t *testing.T, call calls.RecordedCall) []int16 {
	t.Helper()
	p := w.start(t, call)
	speak(p, 0, 50)
	p.Stop()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.samples(t, p.Sid())
}

// TestForms shows the format of the file for each kind of recording. The sign of the caller's wave
// changes every 5 samples, and that of the callee's wave every 10 samples.
func TestForms(t *testing.T) {
	t.Run("two channels", func(t *testing.T) {
		w := newWorld(t)
		samples := w.recordAudio(t, w.call(2*time.Second))
		if len(samples) < 2*8000 {
			t.Fatalf("the recording has %d samples, want at least 16000", len(samples))
		}
		if samples[0] == samples[10] {
			t.Error("the left channel does not change after 5 samples, want the caller")
		}
		if samples[1] != samples[11] {
			t.Error("the right channel changes after 5 samples, want the callee")
		}
	})

	t.Run("caller", func(t *testing.T) {
		w := newWorld(t)
		call := w.call(2 * time.Second)
		call.Track = "inbound"
		if samples := w.recordAudio(t, call); samples[4] == samples[5] {
			t.Error("the audio does not change after 5 samples, want the caller alone")
		}
	})

	t.Run("callee", func(t *testing.T) {
		w := newWorld(t)
		call := w.call(2 * time.Second)
		call.Track = "outbound"
		if samples := w.recordAudio(t, call); samples[4] != samples[5] {
			t.Error("the audio changes after 5 samples, want the callee alone")
		}
	})

	t.Run("mono", func(t *testing.T) {
		w := newWorld(t)
		call := w.call(2 * time.Second)
		call.Mono = true
		samples := w.recordAudio(t, call)
		if samples[0] == samples[5] {
			t.Error("the mix does not change after 5 samples, want it to contain the caller")
		}
		if samples[7] != 0 {
			t.Errorf("where the waves are opposite, the mix is %d, want 0", samples[7])
		}
	})

	t.Run("trimmed", func(t *testing.T) {
		w := newWorld(t)
		p := w.start(t, w.call(2*time.Second))
		start := recordings.Start{Channels: "dual", Trim: "trim-silence"}
		if _, err := w.recordings.Start(t.Context(), w.project, "c", start); err != nil {
			t.Fatal(err)
		}
		speak(p, 30, 80)
		p.Stop()
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := len(w.samples(t, p.Sid())), 2*50*160; got != want {
			t.Errorf("the recording without silence has %d samples, want %d", got, want)
		}
	})
}

// TestPause shows that a pause is silent or cut out, and that no audio is stored during a pause.
func TestPause(t *testing.T) {
	for _, tt := range []struct {
		name   string
		skip   bool
		length time.Duration
	}{
		{"silent", false, 30 * time.Second},
		{"cut out", true, 20 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const begins, ends, tolerance = 10 * time.Second, 20 * time.Second, 100 * time.Millisecond
			said := stream{codec: "PCMU", samples: voice(1, 30)}.packets(t, calls.CallerSide)
			p := spoolOf(t, func(p *spool, at time.Duration) {
				switch {
				case at >= ends:
					p.resumeAt(ends)
				case at >= begins && !p.paused:
					p.pauseAt(begins, tt.skip)
				}
			}, said)

			entries, err := readAll(p.file)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.kind == packetKind && e.at >= begins && e.at < ends {
					t.Fatalf("the spool has a packet at %v, want none between %v and %v", e.at, begins, ends)
				}
			}

			left, _, rate := rendered(t, p)
			length := time.Duration(len(left)) * time.Second / time.Duration(rate)
			if abs(length-tt.length) > 200*time.Millisecond {
				t.Errorf("the recording lasts %v, want about %v", length, tt.length)
			}
			if !tt.skip && !isSilent(left[10*rate+100:20*rate-100]) {
				t.Error("the pause is not silent")
			}

			original := voice(1, 30)
			checkVoice(t, "left", left[:10*rate], rate, original[:10*16000], tolerance)
			checkVoice(t, "left after the pause", left[len(left)-10*rate:], rate, original[20*16000:], tolerance)
		})
	}
}

func isSilent(samples []int16) bool {
	for _, v := range samples {
		if v != 0 {
			return false
		}
	}
	return true
}

// TestLimit shows that a recording that is cut off at a maximum length is marked as incomplete.
func TestLimit(t *testing.T) {
	p := newTestSpool(t)
	speak(p, 0, 100)
	p.Stop()
	p.write()
	plan, err := survey(p.file)
	if err != nil {
		t.Fatal(err)
	}
	if !plan.whole {
		t.Error("the plan of two seconds is not whole before the limit")
	}
	if plan.limit(8000) {
		t.Error("limiting two seconds to one leaves the recording whole, want it cut off")
	}
	if plan.frames != 8000 {
		t.Errorf("the limited recording has %d frames, want 8000", plan.frames)
	}
}
