package record

import (
	"sort"
	"time"
)

// A timeline converts the times of one side's packets to the time of the recording, which follows
// the server's clock.
//
// Packets arrive late by varying times, but never early. The minimum delay within a window
// therefore shows the offset of the sender's clock and, over several windows, its drift. Both sides
// are aligned with the server's clock, and thus with each other. Lines join the minimum delays of
// neighboring windows, and follow drift in either direction.
//
// If timestamps leap permanently, the line breaks. For example, the sender's clock may have stood
// still while the sender was muted. If only the network delayed packets, the line does not break.
// The sender's reports (RFC 3550, section 6.4.1) distinguish these cases. Without reports, the
// subsequent delays do.
type timeline struct {
	tracker  tracker
	segments []segment
	opened   time.Duration // arrival of the current window's first packet
}

// reach is how many windows before and after a window are searched for the minimum delay.
const reach = 30

// add records a packet, and reports whether the packet can be placed.
func (t *timeline) add(e *entry) bool {
	p, ok := t.tracker.place(e)
	if !ok {
		return false
	}

	if t.tracker.started {
		t.segments = append(t.segments, segment{clock: t.tracker.clock})
	}
	s := &t.segments[len(t.segments)-1]
	base := e.at.Microseconds() - toMicros(p.rtp, t.tracker.clock)
	if t.opensWindow(e.at) {
		t.openWindow(s, p.rtp, base)
		t.opened = e.at
	}

	w := &s.windows[len(s.windows)-1]
	w.base = min(w.base, base)
	return true
}

// opensWindow reports whether the packet that the tracker placed last, which arrived at the given
// time, opens a window.
func (t *timeline) opensWindow(at time.Duration) bool {
	age := at - t.opened
	return t.tracker.started || age >= windowLength || t.tracker.leapt && age >= minWindow
}

// openWindow adds a window to a segment. Its first packet has the given timestamp and base.
func (t *timeline) openWindow(s *segment, rtp, base int64) {
	w := window{rtp: rtp, base: base, leap: t.tracker.leapt}
	if w.leap {
		w.rtp = min(w.rtp, t.tracker.before+1) // the packet may have overtaken others
	}
	if n := len(s.windows); n > 0 {
		w.rtp = max(w.rtp, s.windows[n-1].rtp) // the packet may be late
	}
	s.windows = append(s.windows, w)
}

// report records a sender report.
func (t *timeline) report(e *entry) {
	sender, ok := t.tracker.report(e)
	if !ok {
		return
	}
	s := &t.segments[len(t.segments)-1]
	if w := &s.windows[len(s.windows)-1]; !w.reported {
		w.sender, w.reported = sender, true
	}
}

// fitLines replaces the measured delays with the delays of the line. It is called after the last
// packet.
func (t *timeline) fitLines() {
	for i := range t.segments {
		t.segments[i].fitLine()
	}
}

func (s *segment) fitLine() {
	w := s.windows
	lowest := make([]int64, len(w))
	for from := 0; from < len(w); {
		to := from + 1
		for to < len(w) && !s.breaks(from, to) {
			to++
		}
		for i := from; i < to; i++ {
			lowest[i] = lowestBase(w[max(from, i-reach):min(to, i+reach+1)])
		}
		if from > 0 {
			w[from].leap = true
		}
		for i := from + 1; i < to; i++ {
			w[i].leap = false
		}
		from = to
	}

	for i := range w {
		w[i].base = lowest[i]
	}
}

// breaks reports whether a line that begins with the window w[from] ends before w[at].
func (s *segment) breaks(from, at int) bool {
	w := s.windows
	if !w[at].leap {
		return false
	}
	before, after := w[max(from, at-reach):at], w[at:min(len(w), at+reach)]
	change := lowestBase(after) - lowestBase(before)
	if old, ok := lastReport(before); ok {
		if now, ok := firstReport(after); ok {
			change = now - old
		}
	}
	return time.Duration(max(change, -change))*time.Microsecond > leap
}

func lowestBase(w []window) int64 {
	lowest := w[0].base
	for i := range w {
		lowest = min(lowest, w[i].base)
	}
	return lowest
}

func lastReport(w []window) (sender int64, ok bool) {
	for i := len(w) - 1; i >= 0; i-- {
		if w[i].reported {
			return w[i].sender, true
		}
	}
	return 0, false
}

func firstReport(w []window) (sender int64, ok bool) {
	for i := range w {
		if w[i].reported {
			return w[i].sender, true
		}
	}
	return 0, false
}

// at returns when the sender recorded the audio of a packet. This is a time on the server's clock,
// in microseconds since the start of the recording. No matter what the sender claims, it is at most
// ten seconds before the packet arrived.
func (t *timeline) at(p place) int64 {
	s := &t.segments[p.segment]
	w := s.windows
	i := max(sort.Search(len(w), func(i int) bool { return w[i].rtp > p.rtp })-1, 0)

	base := w[i].base
	if i+1 < len(w) && !w[i+1].leap && p.rtp > w[i].rtp {
		base += (w[i+1].base - base) * (p.rtp - w[i].rtp) / (w[i+1].rtp - w[i].rtp)
	}
	arrived := p.arrived.Microseconds()
	return min(max(toMicros(p.rtp, s.clock)+base, arrived-maxLeap.Microseconds()), arrived)
}
