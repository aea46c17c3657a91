package levels

import "math"

// A biquad contains the coefficients of a second-order filter in direct form II. The coefficients a0
// and b0 are 1. From an input x, the filter computes its state w and its output y:
//
//	w[n] = x[n] - a1 w[n-1] - a2 w[n-2]
//	y[n] = w[n] + b1 w[n-1] + b2 w[n-2]
type biquad struct{ b1, b2, a1, a2 float64 }

// A weighting is the frequency weighting of BS.1770-4, annex 1: two filters in a row.
type weighting struct {
	shelf  biquad  // amplifies high frequencies, as the head does
	high   biquad  // removes low frequencies; b1 is -2 and b2 is 1
	gain   float64 // factor for the power of the output, because b0 of the filters is 1
	s1, s2 float64 // the last two states of shelf
	h1, h2 float64 // the last two states of high
}

// newWeighting returns the weighting for a sample rate. The standard defines the filters only for
// 48 kHz. Those for other rates are the bilinear transforms of the same analog filters.
func newWeighting(rate int) weighting {
	const (
		shelfAt, shelfQ, shelfGain = 1681.974450955533, 0.7071752369554196, 3.999843853973347
		highAt, highQ              = 38.13547087602444, 0.5003270373238773
	)
	w := weighting{gain: 1}

	// At lower rates, the shelf is above all frequencies of the audio.
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

// flushDenormal returns 0 for a filter state that has decayed far below any sample. Otherwise, the
// state would become a denormal number, and these slow down the CPU.
func flushDenormal(state float64) float64 {
	if math.Abs(state) < 1e-9 {
		return 0
	}
	return state
}
