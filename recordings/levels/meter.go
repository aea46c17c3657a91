package levels

import "math"

// A meter measures audio that arrives in pieces of any size.
type meter struct {
	rate     int
	channels int
	legs     []leg
	frames   int64 // frames added so far
	slot     slot
	outline  outliner
	talk     talk
	loudness loudness
}

// A slot is a period of 20 ms, in which talk is detected as a whole. If the rate is not divisible
// by 50, slots differ in length by one frame, so that they do not drift.
type slot struct {
	number int64
	began  int64 // first frame
	ends   int64
}

const slotsPerSecond = 50

// A leg contains the measurements of one channel.
type leg struct {
	weight     weighting
	energy     float64 // weighted energy of the current slot without gain, in squared samples
	sum        int64   // sum of samples since the last fold
	squares    int64   // sum of squares since the last fold
	total      float64
	power      float64
	lowest     int // lowest sample of the current pixel
	highest    int // highest sample of the current pixel
	largest    int // largest magnitude of all samples
	clipped    int64
	rail       int   // last sample near full scale
	railAt     int64 // the frame of the sample in rail
	railLength int   // number of consecutive samples equal to rail
}

func newMeter(rate, channels int, frames int64) *meter {
	m := &meter{rate: rate, channels: channels, legs: make([]leg, channels),
		outline: newOutliner(rate, channels, frames)}
	for i := range m.legs {
		m.legs[i] = leg{weight: newWeighting(rate), lowest: math.MaxInt16, highest: math.MinInt16, railAt: -2}
	}

	m.talk.legs = make([]voice, channels)
	for i := range m.talk.legs {
		m.talk.legs[i] = newVoice()
	}
	m.slot.ends = int64(rate) / slotsPerSecond
	return m
}

// add measures interleaved samples in runs. A run ends at the end of a pixel or a slot.
func (m *meter) add(samples []int16) {
	for len(samples) > 0 {
		n := min(m.slot.ends-m.frames, m.outline.left, int64(len(samples)/m.channels))
		run := samples[:int(n)*m.channels]
		for c := range m.legs {
			m.legs[c].add(run, c, m.channels, m.frames)
		}
		samples = samples[len(run):]
		m.frames += n
		m.outline.left -= n
		if m.outline.left == 0 {
			m.endPixel()
		}
		if m.frames == m.slot.ends {
			m.endSlot()
		}
	}
}

// add measures one channel of a run. at is the number of the run's first frame.
func (l *leg) add(run []int16, channel, channels int, at int64) {
	lowest, highest := l.lowest, l.highest
	sum, squares, energy := l.sum, l.squares, l.energy

	// The states of the two filters are kept in registers. Terms of older states come first, since
	// the newest state is available last.
	shelf, high := l.weight.shelf, l.weight.high
	s1, s2 := l.weight.s1, l.weight.s2
	h1, h2 := l.weight.h1, l.weight.h2

	for i := channel; i < len(run); i += channels {
		v := int(run[i])
		lowest, highest = min(lowest, v), max(highest, v)
		sum += int64(v)
		squares += int64(v * v)

		s := (float64(v) - shelf.a2*s2) - shelf.a1*s1
		y := (shelf.b2*s2 + shelf.b1*s1) + s
		h := (y - high.a2*h2) - high.a1*h1
		z := (h2 - h1 - h1) + h
		s1, s2 = s, s1
		h1, h2 = h, h1
		energy += z * z
	}

	l.weight.s1, l.weight.s2 = flushDenormal(s1), flushDenormal(s2)
	l.weight.h1, l.weight.h2 = flushDenormal(h1), flushDenormal(h2)
	l.lowest, l.highest = lowest, highest
	l.sum, l.squares, l.energy = sum, squares, energy
	if lowest < -nearRail || highest > nearRail {
		l.findClipped(run, channel, channels, at)
	}
}

// Samples beyond nearRail are near the maximum of a codec, which is 32124 for mu-law and 32256 for
// A-law. If at least minRail of these samples in a row are equal, they were clipped. A sine that just
// reaches this level has fewer equal samples in a row.
const (
	nearRail  = 31999
	minRail   = 3
	fullScale = 32768
)

// findClipped counts the clipped samples of one channel of a run.
func (l *leg) findClipped(run []int16, channel, channels int, at int64) {
	for i := channel; i < len(run); i += channels {
		if v := int(run[i]); v < -nearRail || v > nearRail {
			l.clip(v, at+int64(i/channels))
		}
	}
}

// clip counts a sample near full scale as clipped if at least minRail such samples in a row are
// equal.
func (l *leg) clip(v int, at int64) {
	if l.railAt == at-1 && l.rail == v {
		l.railLength++
	} else {
		l.railLength = 1
	}
	l.rail, l.railAt = v, at
	switch {
	case l.railLength == minRail:
		l.clipped += minRail
	case l.railLength > minRail:
		l.clipped++
	}
}

// endSlot passes on the results of a slot. It also adds the integer sums to the floating-point sums
// before the integers can overflow. It does this so often that no precision is lost, even over
// days.
func (m *meter) endSlot() {
	length := float64(m.frames - m.slot.began)
	var total float64
	for c := range m.legs {
		l := &m.legs[c]
		l.fold()
		power := l.energy * l.weight.gain / length
		m.talk.legs[c].power = power
		total += power
		l.energy = 0
	}

	m.talk.step()
	m.loudness.addSlot(total)

	m.slot.number++
	m.slot.began = m.frames
	m.slot.ends = (m.slot.number + 1) * int64(m.rate) / slotsPerSecond
}

// fold adds the integer sums to the floating-point sums.
func (l *leg) fold() {
	l.total += float64(l.sum)
	l.power += float64(l.squares)
	l.sum, l.squares = 0, 0
}

// endPixel adds the current pixel to the outline.
func (m *meter) endPixel() {
	for c := range m.legs {
		l := &m.legs[c]
		m.outline.add(l.lowest, l.highest)
		l.largest = max(l.largest, -l.lowest, l.highest)
		l.lowest, l.highest = math.MaxInt16, math.MinInt16
	}
	m.outline.left = m.outline.perPixel
}

// end returns the facts and the outline. Call it after all audio has been added.
func (m *meter) end() (f Facts, o Outline) {
	if m.frames == 0 {
		return Facts{Talk: make([]float64, m.channels)}, m.outline.end()
	}
	if m.outline.left < m.outline.perPixel {
		m.endPixel()
	}
	m.talk.end()

	var largest int
	var power float64
	for c := range m.legs {
		l := &m.legs[c]
		l.fold()
		largest = max(largest, l.largest)
		power += l.power
		f.Clipped = max(f.Clipped, float64(l.clipped)/float64(m.frames))
		if offset := l.total / float64(m.frames) / fullScale; math.Abs(offset) > math.Abs(f.DCOffset) {
			f.DCOffset = offset
		}
	}

	f.Clipped = round(f.Clipped, 6)
	f.DCOffset = round(f.DCOffset, 5)
	f.Peak = roundLevel(decibels(float64(largest) * float64(largest)))
	f.RMS = roundLevel(decibels(power / float64(m.frames) / float64(m.channels)))
	f.Loudness = roundLevel(m.loudness.integrated())

	m.talk.facts(&f, float64(m.frames)/float64(m.rate))
	f.Flags = f.flags(largest)
	return f, m.outline.end()
}

// decibels returns the level of a power, which is given in squared samples. For 0, it returns minus
// infinity.
func decibels(power float64) float64 { return 10 * math.Log10(power/(fullScale*fullScale)) }

// roundLevel rounds a level to hundredths. For an infinite level, it returns nil.
func roundLevel(db float64) *float64 {
	if math.IsInf(db, 0) || math.IsNaN(db) {
		return nil
	}
	db = round(db, 2)
	return &db
}

// round rounds a number to the given number of decimals.
func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale)/scale + 0 // no -0
}
