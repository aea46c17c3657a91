package levels

import "math"

// A biquad contains the coefficients of a second-order filter with a0 = 1. Its states s1 and s2 and
// its output y follow from its input x:
//
//	y = b0 x + s1
//	s1 = c1 x + s2 - a1 s1
//	s2 = c2 x - a2 s1
type biquad struct{ b0, c1, c2, a1, a2 float64 }

// newBiquad returns the filter with the transfer function (b0 + b1/z + b2/z²) / (1 + a1/z + a2/z²).
func newBiquad(b0, b1, b2, a1, a2 float64) biquad {
	return biquad{b0: b0, c1: b1 - a1*b0, c2: b2 - a2*b0, a1: a1, a2: a2}
}

// A weighting contains the two filters of BS.1770-4, annex 1, with their states. The first is a
// shelf that models the effect of the head. The second is a high-pass filter with b = 1, -2, 1.
type weighting struct {
	shelf, high    biquad
	s1, s2, h1, h2 float64
}

// newWeighting returns the filters for a sample rate. The standard defines them only for 48 kHz.
// newWeighting derives them for other rates, by the bilinear transform of the underlying analog
// filters.
func newWeighting(rate int) weighting {
	const (
		shelfAt, shelfQ, shelfGain = 1681.974450955533, 0.7071752369554196, 3.999843853973347
		highAt, highQ              = 38.13547087602444, 0.5003270373238773
	)
	w := weighting{shelf: biquad{b0: 1}}

	// Below this rate, all audio is below the frequencies of the shelf.
	if float64(rate) > 2.1*shelfAt {
		k := math.Tan(math.Pi * shelfAt / float64(rate))
		vh := math.Pow(10, shelfGain/20)
		vb := math.Pow(vh, 0.4996667741545416)
		a0 := 1 + k/shelfQ + k*k
		w.shelf = newBiquad((vh+vb*k/shelfQ+k*k)/a0, 2*(k*k-vh)/a0, (vh-vb*k/shelfQ+k*k)/a0,
			2*(k*k-1)/a0, (1-k/shelfQ+k*k)/a0)
	}

	k := math.Tan(math.Pi * highAt / float64(rate))
	a0 := 1 + k/highQ + k*k
	w.high = newBiquad(1, -2, 1, 2*(k*k-1)/a0, (1-k/highQ+k*k)/a0)
	return w
}

// audible returns 0 for a filter state that has decayed far below any sample. Otherwise, denormal
// numbers would slow down the CPU.
func audible(state float64) float64 {
	if math.Abs(state) < 1e-9 {
		return 0
	}
	return state
}

// Gates of BS.1770-4, and resolution of the loudness histogram.
const (
	absoluteGate = -70.0
	relativeGate = -10.0
	offset       = -0.691
	binsPerLU    = 100
	loudest      = 30
)

// A loudness collects the loudness of overlapping blocks of 400 ms, which begin every 100 ms.
type loudness struct {
	slots  int
	hop    float64    // power of the slots in the current hop
	hops   [4]float64 // the last four hops
	count  int
	blocks [(loudest - absoluteGate) * binsPerLU]uint32 // histogram of loudness
}

const slotsPerHop = slotsPerSecond / 10

// slot adds a slot with the given power, which is the sum over all channels.
func (l *loudness) slot(power float64) {
	l.hop += power
	if l.slots++; l.slots < slotsPerHop {
		return
	}

	l.hops[l.count%len(l.hops)] = l.hop / slotsPerHop
	l.slots, l.hop = 0, 0
	if l.count++; l.count < len(l.hops) {
		return
	}

	var block float64
	for _, hop := range l.hops {
		block += hop / float64(len(l.hops))
	}
	if lufs := offset + decibels(block); lufs > absoluteGate {
		l.blocks[min(int((lufs-absoluteGate)*binsPerLU), len(l.blocks)-1)]++
	}
}

// integrated returns the loudness of all blocks that pass both gates.
func (l *loudness) integrated() float64 {
	gate := l.from(0) + relativeGate
	return l.from(max(0, int(math.Ceil((gate-absoluteGate)*binsPerLU))))
}

// from returns the loudness of the blocks in a bin of the histogram and all higher bins. If they
// contain no blocks, it returns NaN.
func (l *loudness) from(bin int) float64 {
	var power, n float64
	for i := bin; i < len(l.blocks); i++ {
		if l.blocks[i] != 0 {
			power += float64(l.blocks[i]) * math.Pow(10, (absoluteGate+(float64(i)+0.5)/binsPerLU)/10)
			n += float64(l.blocks[i])
		}
	}
	return 10 * math.Log10(power/n)
}
