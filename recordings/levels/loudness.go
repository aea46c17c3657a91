package levels

import "math"

// A biquad contains the coefficients of a second-order filter whose first coefficients are 1. In
// direct form II, its state w and its output y follow from its input x:
//
//	w[n] = x[n] - a1 w[n-1] - a2 w[n-2]
//	y[n] = w[n] + b1 w[n-1] + b2 w[n-2]
type biquad struct{ b1, b2, a1, a2 float64 }

// A weighting contains the two filters of BS.1770-4, annex 1, with their states. The first is a
// shelf that models the effect of the head. The second is a high-pass filter with b1 = -2 and
// b2 = 1. gain is the factor that both filters leave out of the power.
type weighting struct {
	shelf, high    biquad
	gain           float64
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
	w := weighting{gain: 1}

	// Below this rate, all audio is below the frequencies of the shelf.
	if float64(rate) > 2.1*shelfAt {
		k := math.Tan(math.Pi * shelfAt / float64(rate))
		vh := math.Pow(10, shelfGain/20)
		vb := math.Pow(vh, 0.4996667741545416)
		a0 := 1 + k/shelfQ + k*k
		b0 := vh + vb*k/shelfQ + k*k
		w.shelf = biquad{
			b1: 2 * (k*k - vh) / b0,
			b2: (vh - vb*k/shelfQ + k*k) / b0,
			a1: 2 * (k*k - 1) / a0,
			a2: (1 - k/shelfQ + k*k) / a0,
		}
		w.gain = (b0 / a0) * (b0 / a0)
	}

	k := math.Tan(math.Pi * highAt / float64(rate))
	a0 := 1 + k/highQ + k*k
	w.high = biquad{
		b1: -2,
		b2: 1,
		a1: 2 * (k*k - 1) / a0,
		a2: (1 - k/highQ + k*k) / a0,
	}
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
	l.slots++
	if l.slots < slotsPerHop {
		return
	}

	l.hops[l.count%len(l.hops)] = l.hop / slotsPerHop
	l.slots, l.hop = 0, 0
	l.count++
	if l.count < len(l.hops) {
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
		if l.blocks[i] == 0 {
			continue
		}
		count := float64(l.blocks[i])
		lufs := absoluteGate + (float64(i)+0.5)/binsPerLU
		power += count * math.Pow(10, lufs/10)
		n += count
	}
	return 10 * math.Log10(power/n)
}
