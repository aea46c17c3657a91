// Package record records calls so that recordings survive a crash of the server.
//
// During a call, the packets of both sides are appended to a spool. A spool is a file that contains
// the packets as they arrived, each with its time. It is synced to disk about every second. Nothing
// is decoded until the call has ended. A full or slow disk may cost packets of the recording, but
// never delays the call. A part of the disk is left free for everything else. After the call, the
// spool is decoded to a stereo WAV file with the caller on the left. Package recordings ingests the
// file like any upload. The spool is deleted after the recording is safe.
//
// [Spools.Run] renders the spools of killed processes. Their recordings end with the last packet on
// disk. A process locks its spools (flock), so several processes may share a directory. Each spool
// becomes one recording, even if its rendering is interrupted several times.
package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/background"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// Config holds the dependencies of [Spools].
type Config struct {
	Dir        string                 // holds the spools, on a disk of this node; required
	Recordings *recordings.Recordings // receives the recordings; required
	Log        *slog.Logger           // nil means slog.Default
}

// Spools records calls. Its methods are safe for concurrent use.
type Spools struct {
	recordings *recordings.Recordings
	log        *slog.Logger
	dir        *os.Root
	renders    background.Queue

	mu     sync.Mutex
	spools map[string]*spool  // spools in progress, by Sid
	delays map[string]attempt // spools whose rendering failed, by Sid
	closed bool

	bytes, lost atomic.Uint64
	minFree     atomic.Uint64 // bytes of the disk that recordings leave free
}

var _ calls.Recorder = (*Spools)(nil)

// Open opens a directory of spools, and creates it if it does not exist.
func Open(c Config) (*Spools, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making spool directory: %w", err)
	}
	dir, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening spool directory: %w", err)
	}
	s := &Spools{
		recordings: c.Recordings,
		log:        c.Log,
		dir:        dir,
		spools:     make(map[string]*spool),
		delays:     make(map[string]attempt),
	}
	s.minFree.Store(minFree)
	return s, nil
}

// Start implements [calls.Recorder].
func (s *Spools) Start(ctx context.Context, c calls.RecordedCall) (calls.Recording, error) {
	if c.Started.IsZero() {
		c.Started = time.Now()
	}
	isNew := c.Sid == ""
	if isNew {
		sid, err := s.announce(ctx, c)
		if err != nil {
			return nil, err
		}
		c.Sid = sid
	}

	s.mu.Lock()
	p, known := s.spools[c.Sid]
	closed := s.closed
	if !known && !closed {
		p = newSpool(s, c)
		s.spools[c.Sid] = p
	}
	s.mu.Unlock()

	switch {
	case known:
		return p, nil
	case closed:
		return nil, problem.New(problem.Unavailable, "temporarily_unavailable", "the server is stopping")
	}
	if err := p.create(); err != nil {
		s.forget(c.Sid)
		close(p.done)
		if isNew {
			err = errors.Join(err, s.abandon(ctx, c))
		}
		return nil, errors.Join(calls.ErrNotStored, err)
	}
	go p.run()
	return p, nil
}

// abandon stops the recording of a call that has no spool. The recording's media never arrives, so
// the recording becomes absent.
func (s *Spools) abandon(ctx context.Context, c calls.RecordedCall) error {
	rec, err := s.find(ctx, c)
	if err != nil {
		return err
	}
	_, err = s.recordings.Move(ctx, rec, recordings.Stopped, "")
	return err
}

// announce announces the recording of a call and returns its Sid. If the call already has a
// recording in progress that this process does not make, the process that made it was killed. Then,
// announce ends this recording before it announces a new one.
func (s *Spools) announce(ctx context.Context, c calls.RecordedCall) (sid string, err error) {
	d := recordings.Description{
		Metadata: recordings.Metadata{
			CallSid:       c.CallID,
			ConferenceSid: c.RoomSession,
			From:          recordings.CutText(c.From), // callers from outside choose their address
			To:            recordings.CutText(c.To),
			Direction:     c.Direction,
			Source:        c.Source,
			Track:         c.Track,
			StartTime:     c.Started,
		},
		Subscribers: c.Subscribers,
		Channels:    2,
	}
	if c.Mono {
		d.Channels = 1
	}

	for {
		rec, added, err := s.recordings.Announce(ctx, c.Project, d)
		if err != nil {
			return "", fmt.Errorf("announcing a recording: %w", err)
		}
		if added || s.has(rec.Sid) {
			return rec.Sid, nil
		}
		_, err = s.recordings.Move(ctx, rec, recordings.Stopped, "")
		if err != nil && !errors.Is(err, problem.Invalid) { // Invalid: the recording has already ended
			return "", fmt.Errorf("ending an interrupted recording: %w", err)
		}
	}
}

// Wanted implements [calls.Recorder].
func (s *Spools) Wanted(ctx context.Context, of calls.Recorded) (wanted []calls.WantedRecording, err error) {
	found, err := s.recordingsOf(ctx, of)
	if err != nil {
		return nil, err
	}

	for _, rec := range found {
		if !isUnfinished(rec) {
			continue
		}
		wanted = append(wanted, calls.WantedRecording{
			RecordedCall: calls.RecordedCall{
				Sid:         rec.Sid,
				Project:     of.Project,
				CallID:      of.CallID,
				RoomSession: of.RoomSession,
			},
			Paused: rec.Status == recordings.Paused,
			Skip:   rec.PauseBehavior == "skip",
		})
	}
	return wanted, nil
}

// isUnfinished reports whether a recording waits for its media and is in progress or paused.
func isUnfinished(rec recordings.Recording) bool {
	running := rec.Status == recordings.InProgress || rec.Status == recordings.Paused
	return running && !rec.Waits.IsZero()
}

// Interrupt implements [calls.Recorder].
func (s *Spools) Interrupt(ctx context.Context, of calls.Recorded) (recorded bool, err error) {
	return s.endMatching(ctx, of, func(sid string) bool { return !s.has(sid) })
}

// End implements [calls.Recorder].
func (s *Spools) End(ctx context.Context, of calls.Recorded, sid string) error {
	_, err := s.endMatching(ctx, of, func(found string) bool { return sid == "" || found == sid })
	return err
}

// endMatching ends the matching recordings of a call or room session that are in progress or
// paused. It reports whether at least one of them was not paused.
func (s *Spools) endMatching(
	ctx context.Context, of calls.Recorded, matches func(sid string) bool,
) (recorded bool, err error) {
	found, err := s.recordingsOf(ctx, of)
	if err != nil {
		return false, err
	}

	for _, rec := range found {
		if !isUnfinished(rec) || !matches(rec.Sid) {
			continue
		}
		if rec.Status == recordings.InProgress {
			recorded = true
		}
		_, err := s.recordings.Move(ctx, rec, recordings.Stopped, "")
		if err != nil && !errors.Is(err, problem.Invalid) { // Invalid: the recording has already ended
			return recorded, fmt.Errorf("ending a recording: %w", err)
		}
	}
	return recorded, nil
}

// recordingsOf returns the newest recordings of a call or room session.
func (s *Spools) recordingsOf(ctx context.Context, of calls.Recorded) ([]recordings.Recording, error) {
	filter := recordings.Filter{
		Owner:         recordings.Owner{ProjectID: of.Project},
		CallSid:       of.CallID,
		ConferenceSid: of.RoomSession,
	}
	found, err := s.recordings.List(ctx, filter, page.Query{Size: maxPerCall})
	if err != nil {
		return nil, fmt.Errorf("listing the recordings of a call: %w", err)
	}
	return found.Items, nil
}

// maxPerCall is how many of a call's recordings are examined, newest first. Only one recording per
// track can be in progress at a time.
const maxPerCall = 100

// has reports whether this process is making the recording.
func (s *Spools) has(sid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spools[sid] != nil
}

// forget removes a recording that is no longer in progress.
func (s *Spools) forget(sid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.spools, sid)
}

// Close stops all recordings in progress, and waits until they are rendered or ctx is done. In the
// next process, Run renders the spools that are left.
func (s *Spools) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	var open []*spool
	for _, p := range s.spools {
		open = append(open, p)
	}
	s.mu.Unlock()

	for _, p := range open {
		p.Stop()
	}
	for _, p := range open {
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("waiting for recordings to end: %w", ctx.Err())
		}
	}
	return s.renders.Wait(ctx)
}

// Stats holds metrics of spools.
type Stats struct {
	Recordings int    // recordings in progress
	Bytes      uint64 // bytes written since the process started
	Lost       uint64 // packets dropped because the disk was full, nearly full or slow

	// Lag is an upper limit for the age of the oldest entry that is not on disk. If the disk keeps
	// up, it is about one second.
	Lag time.Duration
}

// Stats returns the current metrics.
func (s *Spools) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Recordings: len(s.spools), Bytes: s.bytes.Load(), Lost: s.lost.Load()}
	for _, p := range s.spools {
		durable := time.Unix(0, p.durable.Load())
		stats.Lag = max(stats.Lag, time.Since(durable))
	}
	return stats
}
