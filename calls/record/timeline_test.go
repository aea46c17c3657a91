package record

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A line is a packet with the time at which its audio was said. The test compares this time with the
// packet's place on a timeline.
type line struct {
	e    entry
	said time.Duration
}

// lines returns the packets that an Opus sender sends within length, in the order of their arrival.
// It calls say before each packet is sent. say may change the packet, or return false to drop the
// packet. If reports is true, a report follows every five seconds.
func lines(length time.Duration, ppm float64, jitter time.Duration, reports bool, say func(l *line) bool) []line {
	random := rand.New(rand.NewPCG(1, 1))
	var all []line
	for i := range int(length / (20 * time.Millisecond)) {
		said := time.Duration(float64(i) * 20e6 / (1 + ppm/1e6))
		l := line{entry{
			kind:  packetKind,
			codec: opusCodec,
			ssrc:  1,
			seq:   uint16(i),
			rtp:   uint32(i*960) - 4800,
			at:    said + 40*time.Millisecond + time.Duration(random.ExpFloat64()*float64(jitter)),
		}, said}
		if say != nil && !say(&l) {
			continue
		}
		all = append(all, l)
		if reports && i%250 == 0 {
			r := l
			r.e.kind, r.e.wall = clockKind, (time.Hour + said).Microseconds()
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return int(a.e.at - b.e.at) })
	return all
}

// isSaidBetween reports whether the audio of a packet was said between two times.
func (l *line) isSaidBetween(from, to time.Duration) bool { return l.said >= from && l.said < to }

// A timelineTest describes the packets of a sender; see lines.
type timelineTest struct {
	name     string
	length   time.Duration
	ppm      float64
	jitter   time.Duration
	reports  bool
	say      func(l *line) bool
	maxError time.Duration // how far off a packet may be
}

// timelineTests returns the senders of TestTimeline.
func timelineTests() []timelineTest {
	const ms = time.Millisecond
	return []timelineTest{
		{name: "no jitter", length: time.Minute, maxError: 1 * ms},
		{name: "jitter", length: time.Minute, jitter: 40 * ms, maxError: 5 * ms},
		{name: "a fast clock for four hours", length: 4 * time.Hour, ppm: 100, jitter: 40 * ms, maxError: 15 * ms},
		{name: "a slow clock for four hours", length: 4 * time.Hour, ppm: -100, jitter: 40 * ms, maxError: 15 * ms},
		{
			name:     "the path gets slower",
			length:   10 * time.Minute,
			jitter:   10 * ms,
			maxError: 95 * ms,
			say: func(l *line) bool {
				if l.isSaidBetween(5*time.Minute, time.Hour) {
					l.e.at += 90 * ms
				}
				return true
			},
		},

		{
			name:     "silence with running timestamps",
			length:   time.Minute,
			jitter:   20 * ms,
			maxError: 5 * ms,
			say:      func(l *line) bool { return !l.isSaidBetween(20*time.Second, 30*time.Second) },
		},

		{
			name:     "muted, and the clock stands still",
			length:   time.Minute,
			jitter:   20 * ms,
			maxError: 10 * ms,
			say: func(l *line) bool {
				if l.said >= 30*time.Second {
					l.e.rtp -= 10 * 48000
					l.e.seq -= 500
				}
				return !l.isSaidBetween(20*time.Second, 30*time.Second)
			},
		},

		{
			name:     "muted for less than a second",
			length:   time.Minute,
			jitter:   20 * ms,
			maxError: 10 * ms,
			say: func(l *line) bool {
				if l.said >= 21*time.Second {
					l.e.rtp -= 48000 / 2
					l.e.seq -= 25
				}
				return !l.isSaidBetween(20500*ms, 21*time.Second)
			},
		},

		{
			name:     "muted again and again, with reports",
			length:   2 * time.Minute,
			ppm:      50,
			jitter:   20 * ms,
			reports:  true,
			maxError: 15 * ms,
			say: func(l *line) bool {
				mutes := uint32((l.said + 5*time.Second) / (10 * time.Second))
				l.e.rtp -= mutes * 3 * 48000
				l.e.seq -= uint16(mutes * 150)
				end := time.Duration(mutes) * 10 * time.Second
				return !l.isSaidBetween(end-5*time.Second, end-2*time.Second)
			},
		},

		{
			name:     "the network stalls for three seconds",
			length:   time.Minute,
			jitter:   20 * ms,
			maxError: 5 * ms,
			say: func(l *line) bool {
				if l.isSaidBetween(30*time.Second, 33*time.Second) {
					l.e.at = 33*time.Second + (l.said-30*time.Second)/100
				}
				return true
			},
		},

		{
			name:     "a minute of congestion, with reports",
			length:   5 * time.Minute,
			jitter:   5 * ms,
			reports:  true,
			maxError: 60 * ms,
			say: func(l *line) bool {
				if l.isSaidBetween(2*time.Minute, 2*time.Minute+40*time.Second) {
					l.e.at += 400 * ms
				}
				return true
			},
		},

		{
			name:     "the page is reloaded",
			length:   time.Minute,
			jitter:   20 * ms,
			maxError: 10 * ms,
			say: func(l *line) bool {
				if l.said >= 22*time.Second {
					l.e.ssrc = 99
					l.e.seq += 30000
					l.e.rtp += 123456789
				}
				return !l.isSaidBetween(20*time.Second, 22*time.Second)
			},
		},

		{
			name:     "the codec changes",
			length:   time.Minute,
			jitter:   20 * ms,
			maxError: 10 * ms,
			say: func(l *line) bool {
				if l.said >= 30*time.Second {
					l.e.codec, l.e.rtp = muLawCodec, uint32(l.said/(20*ms))*160
				}
				return true
			},
		},

		{
			name:     "timestamps leap ahead",
			length:   time.Minute,
			jitter:   20 * ms,
			maxError: 10 * ms,
			say: func(l *line) bool {
				if l.said >= 30*time.Second {
					l.e.rtp += 3 * 48000
				}
				return true
			},
		},
	}
}

// TestTimeline shows where packets are placed. Their place is the time when their audio was said,
// plus the minimum delay.
func TestTimeline(t *testing.T) {
	for _, tt := range timelineTests() {
		t.Run(tt.name, func(t *testing.T) {
			lost, worst := placeAll(lines(tt.length, tt.ppm, tt.jitter, tt.reports, tt.say))
			if abs(worst) > tt.maxError {
				t.Errorf("a packet is misplaced by %v, want at most %v", worst, tt.maxError)
			}
			if lost > 12 {
				t.Errorf("%d packets have no place, want at most 12", lost)
			}
		})
	}
}

// placeAll places packets on the timeline that fits them. It returns how many have no place, and
// the largest error of a place. The right place is the time when the audio was said, plus the
// minimum delay.
func placeAll(all []line) (lost int, worst time.Duration) {
	var line timeline
	for i := range all {
		if all[i].e.kind == clockKind {
			line.report(&all[i].e)
		} else {
			line.add(&all[i].e)
		}
	}
	line.fitLines()

	var tracker tracker
	for i := range all {
		if all[i].e.kind == clockKind {
			continue
		}
		p, ok := tracker.place(&all[i].e)
		if !ok {
			lost++
			continue
		}

		place := time.Duration(line.at(p)) * time.Microsecond
		off := place - all[i].said - 40*time.Millisecond
		if abs(off) > abs(worst) {
			worst = off
		}
	}
	return lost, worst
}

// TestHostileTimeline shows that no values in the packets of a sender create too many windows, or
// place a packet far from its arrival.
func TestHostileTimeline(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var line timeline
	entries := make([]entry, 200*600) // 200 per second for ten minutes
	for i := range entries {
		e := entry{kind: packetKind, codec: opusCodec, at: time.Duration(i) * 5 * time.Millisecond}
		switch i / 20_000 {
		case 0:
			e.ssrc, e.seq, e.rtp = random.Uint32(), uint16(random.Uint32()), random.Uint32()
		case 1:
			e.seq, e.rtp = uint16(i), random.Uint32()
		case 2:
			e.ssrc, e.codec = uint32(i%2), opusCodec+codec(random.IntN(4))
		case 3:
			e.seq, e.rtp = uint16(i), uint32(i)*uint32(i)
		default:
			e.seq, e.rtp = uint16(i*3), uint32(i)*48*uint32(random.IntN(100))
		}

		entries[i] = e
		line.add(&e)
		line.report(&entry{rtp: random.Uint32(), wall: int64(random.Uint64())})
	}
	line.fitLines()

	windows := 0
	for _, s := range line.segments {
		windows += len(s.windows)
	}
	if windows > 600*5 {
		t.Errorf("ten minutes have %d windows, want at most five a second", windows)
	}

	line.tracker = tracker{}
	var worst time.Duration
	for i := range entries {
		p, ok := line.tracker.place(&entries[i])
		if ok {
			placed := time.Duration(line.at(p)) * time.Microsecond
			worst = max(worst, abs(placed-entries[i].at))
		}
	}
	if worst > 5*time.Minute {
		t.Errorf("a packet is placed %v from its arrival, want at most 5 minutes", worst)
	}
}
