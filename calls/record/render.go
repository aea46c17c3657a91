package record

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/wav"
)

// interrupt marks the recording of a killed process as stopped. The call can then be recorded again
// before this recording is rendered.
func (s *Spools) interrupt(ctx context.Context, file *os.File) {
	_, c, err := openReader(file)
	if err != nil {
		return // render handles this error
	}
	err = s.stopLive(ctx, c)
	if err != nil && !errors.Is(err, problem.NotFound) && !errors.Is(err, problem.Invalid) {
		s.log.Warn("could not stop an interrupted recording", "recording", fabric.HideSid(c.Sid), "error", err)
	}
}

// stopLive marks a recording as stopped if it is in progress or paused.
func (s *Spools) stopLive(ctx context.Context, c calls.RecordedCall) error {
	rec, err := s.find(ctx, c)
	if err != nil || !isLive(rec) {
		return err
	}
	_, err = s.recordings.Move(ctx, rec, recordings.Stopped, "")
	return err
}

func (s *Spools) find(ctx context.Context, c calls.RecordedCall) (recordings.Recording, error) {
	return s.recordings.Find(ctx, recordings.Owner{ProjectID: c.Project}, c.Sid)
}

// isLive reports whether a recording is in progress or paused.
func isLive(rec recordings.Recording) bool {
	return !rec.Waits.IsZero() && rec.Status != recordings.Stopped
}

// findWithoutMedia returns a recording whose media has not arrived. ok is false if the recording
// was deleted or has its media.
func (s *Spools) findWithoutMedia(
	ctx context.Context, c calls.RecordedCall,
) (rec recordings.Recording, ok bool, err error) {
	rec, err = s.find(ctx, c)
	if errors.Is(err, problem.NotFound) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, fmt.Errorf("finding the recording: %w", err)
	}
	isAbsent := rec.Status == recordings.Absent && rec.Bytes == 0
	return rec, isAbsent || !rec.Waits.IsZero(), nil
}

// render makes a recording from a spool. When it returns nil, the spool is no longer needed: the
// recording is complete or has been deleted, or nothing was recorded.
//
// A process may be killed after it has ingested a recording and before it removes the spool. The
// next attempt then finds a recording that already has media. If two attempts race, the key of the
// spool ensures that only one of them adds media.
func (s *Spools) render(ctx context.Context, file *os.File) error {
	_, c, err := openReader(file)
	if errors.Is(err, errNoSpool) {
		return nil
	}
	if err != nil {
		return err
	}
	s.interrupt(ctx, file)

	rec, ok, err := s.findWithoutMedia(ctx, c)
	if err != nil {
		return err
	}
	if !ok {
		return nil
	}

	err = s.ingest(ctx, file, rec)
	if !errors.Is(err, problem.Invalid) {
		return err
	}
	// The recording may have been deleted or completed in the meantime.
	if _, ok, findErr := s.findWithoutMedia(ctx, c); findErr == nil && !ok {
		return nil
	}
	return err
}

// ingest decodes a spool and passes it to package recordings.
func (s *Spools) ingest(ctx context.Context, file *os.File, rec recordings.Recording) error {
	plan, err := survey(file)
	if err != nil {
		return err
	}
	complete := plan.limit((s.recordings.MaxUpload() - wavHead) / frameBytes)
	source, err := plan.source(file, rec)
	if err != nil {
		return err
	}

	d := recordings.Description{Sid: rec.Sid, IdempotencyKey: "spool:" + rec.Sid, Late: true}
	if !complete {
		d.ErrorCode = recordings.Incomplete
	}
	_, _, err = s.recordings.Ingest(ctx, recordings.Upload{
		ProjectID: rec.ProjectID,
		Body:      wav.NewView(source),
		Own:       true,
		Describe:  func() (recordings.Description, error) { return d, nil },
	})
	if err != nil {
		return fmt.Errorf("ingesting: %w", err)
	}
	return nil
}

const (
	frameBytes = 4   // two channels of 16 bits
	wavHead    = 100 // maximum number of bytes before the audio
)

// source returns the audio of a spool in the format of its recording. The format has both sides,
// one side or their mix, with or without the silence at the ends.
func (p *plan) source(file *os.File, rec recordings.Recording) (wav.Source, error) {
	open := func() (wav.Source, error) {
		stereo, err := newMixer(file, p)
		if err != nil {
			return nil, err
		}
		switch {
		case rec.Track == "inbound", rec.ConferenceSid != "":
			return wav.Leg(stereo, 1+int(calls.CallerSide)), nil
		case rec.Track == "outbound":
			return wav.Leg(stereo, 1+int(calls.CalleeSide)), nil
		case rec.Channels == 1:
			return wav.Mix(stereo), nil
		}
		return stereo, nil
	}

	source, err := open()
	if err != nil || rec.Trim != "trim-silence" {
		return source, err
	}
	from, to, err := soundOf(source)
	if err != nil {
		return nil, err
	}
	source, err = open() // from the beginning again
	if err != nil {
		return nil, err
	}
	return newCut(source, from, to)
}
