package record

import (
	"errors"
	"io"
	"time"

	"github.com/selvage/selvage/calls"
)

// A plan contains the result of the first pass over a spool. The first sample cannot be written
// without it. It takes at most about 300 KB per hour of the call.
type plan struct {
	rate   int // sample rate of the result
	frames int64
	pauses []pause
	sides  [2]timeline
	whole  bool // nothing is missing
}

// A pause is a time without packets in the recording, in frames.
type pause struct {
	from, to int64
	skip     bool // whether to cut out the pause
}

// survey makes the first pass over a spool.
func survey(file io.ReaderAt) (*plan, error) {
	in, _, err := openReader(file)
	if err != nil {
		return nil, err
	}

	p, s := &plan{}, surveyor{}
	for {
		e, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		s.end = max(s.end, e.at)
		s.addEntry(p, &e)
	}

	for i := range p.sides {
		p.sides[i].fitLines()
	}
	p.whole = s.stopped && !s.lost
	p.rate = 8000
	if s.wide {
		p.rate = 16000
	}
	p.measure(&s)
	return p, nil
}

// A surveyor holds the state of the first pass.
type surveyor struct {
	end     time.Duration // time of the last entry
	wide    bool          // a side has a wideband codec
	lost    bool          // packets were dropped
	stopped bool          // the recording ended normally
	paused  bool          // the last span has no end yet
	spans   []span
}

// A span is the time of a pause.
type span struct {
	from, to time.Duration
	skip     bool
}

// addEntry adds an entry to the plan.
func (s *surveyor) addEntry(p *plan, e *entry) {
	switch e.kind {
	case packetKind:
		placed := p.sides[e.side].add(e)
		s.wide = s.wide || placed && (e.codec == opusCodec || e.codec == g722Codec)
	case clockKind:
		p.sides[e.side].report(e)
	case lostKind:
		s.lost = true
	case stopKind:
		s.stopped = true
	case pauseKind:
		s.resume(e.at) // a second pause may have a different skip
		s.spans, s.paused = append(s.spans, span{from: e.at, skip: e.skip}), true
	case resumeKind:
		s.resume(e.at)
	}
}

func (s *surveyor) resume(at time.Duration) {
	if s.paused {
		last := &s.spans[len(s.spans)-1]
		last.to, s.paused = max(at, last.from), false
	}
}

// measure computes the pauses and the length of the result in frames.
func (p *plan) measure(s *surveyor) {
	s.resume(s.end)
	p.frames = p.toFrames(s.end.Microseconds())
	var end int64
	for _, span := range s.spans {
		now := pause{
			from: p.toFrames(span.from.Microseconds()),
			to:   p.toFrames(span.to.Microseconds()),
			skip: span.skip,
		}
		now.from = max(now.from, end) // entries of several goroutines may be out of order
		end = max(now.to, now.from)
		if end == now.from {
			continue
		}
		p.pauses = append(p.pauses, now)
		if span.skip {
			p.frames -= now.to - now.from
		}
	}
}

// toFrames converts microseconds to frames, rounded down.
func (p *plan) toFrames(micros int64) int64 { return micros * int64(p.rate) / 1_000_000 }

// limit limits the result to a number of frames. It reports whether the result is complete.
func (p *plan) limit(frames int64) bool {
	if p.frames > frames {
		p.frames, p.whole = frames, false
	}
	return p.whole
}

// sideOf returns a reader of one side's audio.
func (p *plan) sideOf(file io.ReaderAt, side calls.Side) (*sideReader, error) {
	in, _, err := openReader(file)
	if err != nil {
		return nil, err
	}
	return &sideReader{in: in, side: side, plan: p, last: place{segment: -1}}, nil
}
