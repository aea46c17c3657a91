package recordings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/audio"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/recordings/wav"
)

// Parts stored with a recording's media. They are computed during the upload.
const (
	peaksPart = "peaks" // outline of the waveform
	indexPart = "index" // decoder checkpoints, for codecs that need them
)

// maxSlow is the longest audio that is measured if decoding it takes much CPU time. The sender waits
// for the measurement, and a small file can contain very long audio: two bytes of Opus can contain
// 120 ms.
const maxSlow = 4 * time.Hour

var partNames = []string{peaksPart, indexPart}

// A measurement is what one pass over a recording's audio computes.
type measurement struct {
	levels *levels.Facts     // nil if the audio was not measured
	parts  map[string][]byte // the parts to store with the media, by name
}

// measure measures the audio of a file whose digest is sha256. Errors and panics are only logged,
// because storing the upload is more important than its levels. After one of them, the measurement
// is empty.
func (r *Recordings) measure(f io.ReaderAt, facts wav.Facts, sha256 string) (m measurement) {
	if facts.Frames == 0 {
		return measurement{}
	}

	turns := r.measurementTurns(facts)
	turns <- struct{}{}
	defer func() { <-turns }()

	defer func() {
		if fault := recover(); fault != nil {
			r.c.Log.Error("measuring a recording", "sha256", sha256,
				"panic", fmt.Sprint(fault), "stack", string(debug.Stack()))
			m = measurement{}
		}
	}()

	m, err := measureAudio(f, facts)
	if err != nil {
		r.c.Log.Error("measuring a recording", "sha256", sha256, "error", err)
		return measurement{}
	}
	return m
}

// measurementTurns returns the channel that limits the number of concurrent measurements. Slow
// audio has its own limit, so that other uploads do not wait for it.
func (r *Recordings) measurementTurns(facts wav.Facts) chan struct{} {
	if audio.IsSlow(facts) {
		return r.decoding
	}
	return r.measuring
}

// measureAudio measures the audio of a file. The measurement has no levels if the codec cannot be
// converted, or if measuring would take too long.
func measureAudio(f io.ReaderAt, facts wav.Facts) (measurement, error) {
	samples, err := audio.Open(f, facts, nil)
	if errors.Is(err, wav.ErrCodec) {
		return measurement{}, nil
	}
	if err != nil {
		return measurement{}, err
	}
	if audio.IsSlow(facts) && facts.Duration() > maxSlow {
		return measurement{parts: indexParts(samples)}, nil
	}

	measured, outline, err := levels.Measure(samples)
	if err != nil {
		return measurement{}, err
	}
	parts := indexParts(samples)
	parts[peaksPart] = outline.Marshal()
	return measurement{levels: &measured, parts: parts}, nil
}

// indexParts returns the parts that hold the index of the audio. Most codecs need no index and have
// no such part.
func indexParts(samples audio.Source) map[string][]byte {
	parts := make(map[string][]byte)
	if index := samples.Index(); index != nil {
		parts[indexPart] = index
	}
	return parts
}

// Outline returns one of the owner's recordings and its outline. The row of the recording may be up
// to 300 ms old. If the recording was not measured, Outline returns problem.NotAcceptable. If it
// has no media, Outline returns problem.NotFound.
func (r *Recordings) Outline(ctx context.Context, o Owner, sid string) (Recording, levels.Outline, error) {
	rec, err := r.withMedia(ctx, o, sid)
	if err != nil {
		return rec, levels.Outline{}, err
	}
	if rec.Levels == nil {
		return rec, levels.Outline{}, problem.New(problem.NotAcceptable, "not_acceptable",
			"the recording has no waveform: it is stored as %s and was not measured", rec.Codec)
	}

	part, err := r.c.Media.ReadPart(rec.MediaKey, peaksPart)
	if err != nil {
		return rec, levels.Outline{}, r.unlessGone(ctx, o, sid, fmt.Errorf("opening outline of %s: %w", rec.ID, err))
	}
	outline, err := levels.ParseOutline(part)
	if err != nil {
		return rec, levels.Outline{}, err
	}
	return rec, outline, nil
}

// MediaParts returns the names of the parts that the media of a recording may have.
func MediaParts() []string { return slices.Clone(partNames) }
