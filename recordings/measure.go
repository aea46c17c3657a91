package recordings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/recordings/wav"
)

// The parts kept with a recording's media. They are computed when it is uploaded.
const (
	peaksPart = "peaks" // the outline of the waveform
	indexPart = "index" // checkpoints of the decoder, for codecs that need them
)

var partNames = []string{peaksPart, indexPart}

// measure measures a recording in one pass over its audio. It stores the levels in rec and returns
// the parts to keep with the media. Codecs that cannot be converted get no levels. Failures are
// only logged, because keeping the upload matters more than its levels.
func (r *Recordings) measure(f io.ReaderAt, facts wav.Facts, rec *Recording) (parts map[string][]byte) {
	if facts.Frames == 0 {
		return nil
	}

	// At most a fixed number of uploads are measured at once, and a panic loses only the levels.
	r.measuring <- struct{}{}
	defer func() {
		<-r.measuring
		if fault := recover(); fault != nil {
			r.log.Error("measuring a recording", "sha256", rec.SHA256, "panic", fmt.Sprint(fault),
				"stack", string(debug.Stack()))
			rec.Levels, parts = nil, nil
		}
	}()

	samples, err := wav.Open(f, facts, nil)
	if errors.Is(err, wav.ErrCodec) {
		return nil
	}
	var found levels.Facts
	var outline levels.Outline
	if err == nil {
		found, outline, err = levels.Measure(samples)
	}
	if err != nil {
		r.log.Error("measuring a recording", "sha256", rec.SHA256, "error", err)
		return nil
	}

	rec.Levels = &found
	parts = map[string][]byte{peaksPart: outline.Marshal()}
	if index := samples.Index(); index != nil {
		parts[indexPart] = index
	}
	return parts
}

// Outline returns a recording of the owner, as it was within the last 300 ms, and its outline.
// The error is a problem.NotAcceptable if it was not measured, and a problem.NotFound if it
// has no media.
func (r *Recordings) Outline(ctx context.Context, o Owner, sid string) (Recording, levels.Outline, error) {
	rec, err := r.withMedia(ctx, o, sid)
	if err != nil {
		return rec, levels.Outline{}, err
	}
	if rec.Levels == nil {
		return rec, levels.Outline{}, problem.New(problem.NotAcceptable, "not_acceptable",
			"the recording has no waveform: its codec, %s, cannot be decoded", rec.Codec)
	}

	part, err := r.media.ReadPart(rec.MediaKey, peaksPart)
	if err != nil {
		return rec, levels.Outline{}, r.unlessGone(ctx, o, sid, fmt.Errorf("opening outline of %s: %w", rec.ID, err))
	}
	outline, err := levels.ParseOutline(part)
	return rec, outline, err
}
