package recordings

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/selvage/selvage/recordings/audio"
	"github.com/selvage/selvage/recordings/mp3/mp3test"
	"github.com/selvage/selvage/recordings/wav"
)

// A brokenDisk is a file whose reads fail.
type brokenDisk func() error

func (b brokenDisk) ReadAt([]byte, int64) (int, error) { return 0, b() }

// TestLyingTag shows that a long MP3 is not measured, even if its tag claims that it is short.
func TestLyingTag(t *testing.T) {
	file := mp3test.Lying(int(maxSlow/mp3test.FrameLength) + 1)
	facts, err := audio.Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil || facts.Codec != "mp3" {
		t.Fatalf("Parse = %+v, %v, want an MP3", facts, err)
	}
	m := New(Config{}).measure(bytes.NewReader(file), facts, "")
	if m.levels != nil {
		t.Errorf("the levels are %+v, want none", m.levels)
	}
	if m.parts[indexPart] == nil {
		t.Errorf("the media has %d parts, but no index", len(m.parts))
	}
}

// TestMeasuringNeverFails shows that a recording is stored without levels if measuring it fails.
// The failure is logged.
func TestMeasuringNeverFails(t *testing.T) {
	facts := wav.Facts{
		Format: wav.Format{
			Codec:       "pcm_s16le",
			SampleRate:  8000,
			Channels:    1,
			Bits:        16,
			BlockAlign:  2,
			BlockFrames: 1,
		},
		Frames: 100,
		Length: 200,
	}
	faults := map[string]func() error{
		"error": func() error { return errors.New("sector not found") },
		"panic": func() error { panic("index out of range") },
	}

	for name, fault := range faults {
		var log strings.Builder
		r := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 10 { // more than most machines measure at the same time
			m := r.measure(brokenDisk(fault), facts, "")
			if m.parts != nil {
				t.Errorf("%s: %d parts, want none", name, len(m.parts))
			}
			if m.levels != nil {
				t.Errorf("%s: levels %+v, want none", name, m.levels)
			}
		}
		if got := strings.Count(log.String(), "measuring a recording"); got != 10 {
			t.Errorf("%s: the log reports %d failures, want 10:\n%s", name, got, log.String())
		}
	}
}
