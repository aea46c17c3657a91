package record

import (
	"errors"
	"io"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings/wav"
)

// A mixer is the audio of a spool as a [wav.Source]. The caller is on the left and the callee on
// the right. Pauses are cut out or silent. A mixer can be read once, from start to end.
type mixer struct {
	plan   *plan
	legs   [2]*sideReader
	at     int64 // frames returned
	now    int64 // frames read, including pauses
	pauses []pause
	buf    [2][]int16
	last   [2]int16 // the last returned frame
}

var _ wav.Source = (*mixer)(nil)

// mixed is the number of frames of each side that are read at a time.
const mixed = 1024

func newMixer(file io.ReaderAt, p *plan) (*mixer, error) {
	m := &mixer{plan: p, pauses: p.pauses}
	for side := range m.legs {
		l, err := p.sideOf(file, calls.Side(side))
		if err != nil {
			return nil, err
		}
		m.legs[side], m.buf[side] = l, make([]int16, mixed)
	}
	return m, nil
}

// Rate implements [wav.Source].
func (m *mixer) Rate() int { return m.plan.rate }

// Channels returns 2.
func (m *mixer) Channels() int { return 2 }

// Frames implements [wav.Source].
func (m *mixer) Frames() int64 { return m.plan.frames }

var errBackwards = errors.New("rendering: a spool is read from its start to its end")

// ReadFrames implements [wav.Source] for sequential reads. The last frame can be read twice,
// because readers of bytes may stop within a frame.
func (m *mixer) ReadFrames(dst []int16, at int64) (n int, err error) {
	switch {
	case len(dst) == 0:
		return 0, nil
	case at == m.at-1:
		n = copy(dst, m.last[:]) / 2
	case at != m.at:
		return 0, errBackwards
	}
	defer func() {
		if n > 0 {
			copy(m.last[:], dst[2*n-2:])
		}
	}()

	for 2*n < len(dst) {
		if m.at == m.plan.frames {
			return n, io.EOF
		}
		got, err := m.readSome(dst[2*n:])
		if err != nil {
			return n, err
		}
		n += got
	}
	return n, nil
}

// readSome reads at most mixed frames. It stops earlier if dst is full, or if a pause begins or
// ends.
func (m *mixer) readSome(dst []int16) (n int, err error) {
	want, inside := int64(mixed), false
	if len(m.pauses) > 0 {
		inside = m.now >= m.pauses[0].from
		if inside {
			want = min(want, m.pauses[0].to-m.now)
		} else {
			want = min(want, m.pauses[0].from-m.now)
		}
	}
	skip := inside && m.pauses[0].skip
	if !skip {
		want = min(want, int64(len(dst)/2), m.plan.frames-m.at)
	}

	for side, l := range m.legs {
		if err := l.read(m.buf[side][:want]); err != nil {
			return 0, err
		}
	}
	m.now += want
	if len(m.pauses) > 0 && m.now >= m.pauses[0].to {
		m.pauses = m.pauses[1:]
	}
	if skip {
		return 0, nil
	}
	m.at += want

	for i := range want {
		dst[2*i], dst[2*i+1] = m.buf[0][i], m.buf[1][i]
	}
	if inside {
		clear(dst[:2*want])
	}
	return int(want), nil
}

// quiet is the greatest absolute value of a sample that counts as silence when the ends are
// trimmed. It is 50 dB below full scale.
const quiet = 104

// soundOf returns the range of frames of a source from its first sound to its last sound.
func soundOf(s wav.Source) (from, to int64, err error) {
	from = s.Frames()
	buf := make([]int16, mixed*s.Channels())
	for at := int64(0); at < s.Frames(); {
		n, err := s.ReadFrames(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		for i, v := range buf[:n*s.Channels()] {
			if frame := at + int64(i/s.Channels()); v > quiet || v < -quiet {
				from, to = min(from, frame), frame+1
			}
		}
		at += int64(n)
	}
	return min(from, to), to, nil
}

// A cut is a range of frames of a source.
type cut struct {
	wav.Source
	from, to int64
}

// newCut returns the frames [from, to) of s. It reads and discards the earlier frames.
func newCut(s wav.Source, from, to int64) (wav.Source, error) {
	channels := int64(s.Channels())
	buf := make([]int16, mixed*channels)
	for at := int64(0); at < from; {
		frames := min(mixed, from-at)
		n, err := s.ReadFrames(buf[:frames*channels], at)
		if err != nil {
			return nil, err
		}
		at += int64(n)
	}
	return &cut{Source: s, from: from, to: to}, nil
}

// Frames implements [wav.Source].
func (c *cut) Frames() int64 { return c.to - c.from }

// ReadFrames implements [wav.Source].
func (c *cut) ReadFrames(dst []int16, at int64) (n int, err error) {
	room := c.to - c.from - at
	if int64(len(dst)/c.Channels()) <= room {
		return c.Source.ReadFrames(dst, c.from+at)
	}
	n, err = c.Source.ReadFrames(dst[:room*int64(c.Channels())], c.from+at)
	if err != nil {
		return n, err
	}
	return n, io.EOF
}
