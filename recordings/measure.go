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

// maxSlow is the maximum length of audio that is measured if decoding it takes much CPU time. The
// sender waits for the measurement, and two bytes of Opus can contain 120 ms.
const maxSlow = 4 * time.Hour

var partNames = []string{peaksPart, indexPart}

// measure measures a recording in one pass over its audio. It stores the levels in rec and returns
// the parts to store with the media. Codecs that cannot be converted get no levels. Errors are only
// logged, because storing the upload is more important than its levels.
func (r *Recordings) measure(f io.ReaderAt, facts wav.Facts, rec *Recording) (parts map[string][]byte) {
	if facts.Frames == 0 {
		return nil
	}

	// This limits the number of concurrent measurements. Long measurements have their own limit, so
	// that other uploads do not wait for them.
	turns := r.measuring
	if audio.IsSlow(facts) {
		turns = r.decoding
	}
	turns <- struct{}{}
	defer func() { // after a panic, only the levels are lost
		<-turns
		if fault := recover(); fault != nil {
			r.c.Log.Error("measuring a recording", "sha256", rec.SHA256,
				"panic", fmt.Sprint(fault), "stack", string(debug.Stack()))
			parts = nil
		}
	}()

	measured, parts, err := measureAudio(f, facts)
	if err != nil {
		r.c.Log.Error("measuring a recording", "sha256", rec.SHA256, "error", err)
		return nil
	}
	rec.Levels = measured
	return parts
}

// measureAudio returns the levels of a file, or nil if the file cannot be converted or would take
// too long to measure. It also returns the parts to store with the file.
func measureAudio(f io.ReaderAt, facts wav.Facts) (*levels.Facts, map[string][]byte, error) {
	samples, err := audio.Open(f, facts, nil)
	if errors.Is(err, wav.ErrCodec) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if audio.IsSlow(facts) && facts.Duration() > maxSlow {
		return nil, indexOf(samples), nil
	}

	measured, outline, err := levels.Measure(samples)
	if err != nil {
		return nil, nil, err
	}
	parts := indexOf(samples)
	parts[peaksPart] = outline.Marshal()
	return &measured, parts, nil
}

// indexOf returns the index of a recording's audio as a part. Without an index, it returns no
// parts.
func indexOf(samples audio.Source) map[string][]byte {
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
	return rec, outline, err
}

// MediaParts returns the names of the parts that the media of a recording may have.
func MediaParts() []string { return slices.Clone(partNames) }
