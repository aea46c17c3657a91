package mp3

import (
	"io"
	"math"
	"sync"
)

// A resampled is a source that converts another source to a different rate. Each sample is a sum of
// the source samples around its position, weighted by a sinc in a Blackman window. Seeking does not
// change samples.
type resampled struct {
	in       *input
	from, to int64 // the two rates, divided by their greatest common divisor
	rate     int
	half     int         // number of source samples on each side
	weights  [][]float32 // by phase; nil if not computed yet
	spare    []float32   // weights of one phase, if there are too many phases to store
}

const (
	crossings = 24  // number of zeros of the sinc on each side
	fine      = 512 // number of kernel points between two zeros
	chunk     = 256 // number of samples computed at a time
	manyPhase = 512 // above this number of phases, weights are not stored
)

// kernel returns one half of the windowed sinc, with a cutoff at 94 % of the band.
var kernel = sync.OnceValue(func() []float32 {
	k := make([]float32, crossings*fine+2)
	for i := range crossings * fine {
		w := 0.42 + float64(0.5*cosPi(i, crossings*fine)) + float64(0.08*cosPi(2*i, crossings*fine))
		sinc := 0.94
		if i > 0 {
			sinc = sinPi(94*i, 100*fine) / (math.Pi * float64(i) / fine)
		}
		k[i] = float32(float64(sinc * w))
	}
	return k
})

// Resample returns a source with the audio of src at a different sample rate.
func Resample(src Source, rate int) Source { return newResampled(src, rate) }

func newResampled(src Source, rate int) *resampled {
	from, to := int64(src.Rate()), int64(rate)
	for a, b := from, to; ; a, b = b, a%b {
		if b == 0 {
			from, to = from/a, to/a
			break
		}
	}

	r := &resampled{from: from, to: to, rate: rate}
	r.half = int((crossings*max(from, to)+to-1)/to) + 1

	span := int(chunk*from/to) + 2*r.half + 2
	r.in = newInput(src, span)

	if to <= manyPhase {
		r.weights = make([][]float32, to)
	}
	r.spare = make([]float32, 2*r.half)
	return r
}

func (r *resampled) Rate() int     { return r.rate }
func (r *resampled) Channels() int { return len(r.in.block) }
func (r *resampled) Frames() int64 { return r.frames(r.in.frames) }

// frames returns n·to/from rounded up, without overflow.
func (r *resampled) frames(n int64) int64 {
	return n/r.from*r.to + (n%r.from*r.to+r.from-1)/r.from
}

func (r *resampled) ReadFrames(dst []int16, at int64) (n int, err error) {
	left := r.Frames() - at
	if left <= 0 {
		return 0, io.EOF
	}
	n = int(min(int64(len(dst)/len(r.in.block)), left))
	for i := 0; i < n; i += chunk {
		for ch := range len(r.in.block) {
			if err := r.compute(dst[i*len(r.in.block)+ch:], ch, at+int64(i), min(chunk, n-i)); err != nil {
				return i, err
			}
		}
	}
	return n, nil
}

// compute computes n samples of a channel, beginning with sample at. In dst, consecutive samples are
// one frame apart.
func (r *resampled) compute(dst []int16, ch int, at int64, n int) error {
	place := func(m int64) (whole, phase int64) {
		return m/r.to*r.from + m%r.to*r.from/r.to, m % r.to * r.from % r.to
	}

	first, _ := place(at)
	last, _ := place(at + int64(n) - 1)
	begin := first - int64(r.half) + 1
	x, err := r.in.samples(ch, begin, int(last-begin)+r.half+1)
	if err != nil {
		return err
	}

	for i := range n {
		whole, phase := place(at + int64(i))
		w := r.weightsFor(phase)
		part := x[whole-first:][:len(w)]
		sum := float32(0)
		for j, v := range w {
			sum += float32(part[j] * v)
		}
		sum = max(-32768, min(32767, float32(math.Floor(float64(sum)+0.5))))
		dst[i*len(r.in.block)] = int16(sum)
	}
	return nil
}

// weightsFor returns the weights of the samples around a position. The position is the fraction
// phase/to after a sample.
func (r *resampled) weightsFor(phase int64) []float32 {
	if r.weights == nil {
		return r.weigh(r.spare, phase)
	}
	if r.weights[phase] == nil {
		r.weights[phase] = r.weigh(make([]float32, 2*r.half), phase)
	}
	return r.weights[phase]
}

// weigh computes the weights from the kernel by linear interpolation. If the rate is lowered, the
// kernel is stretched.
func (r *resampled) weigh(w []float32, phase int64) []float32 {
	k := kernel()
	unit := max(r.from, r.to) // distance x between two zeros of the sinc
	gain := float32(float64(r.to) / float64(unit))
	for i := range w {
		x := int64(i-r.half+1)*r.to - phase
		if x < 0 {
			x = -x
		}
		w[i] = 0
		if at := x * fine / unit; at < crossings*fine {
			part := float32(float64(x*fine%unit) / float64(unit))
			w[i] = float32((k[at] + float32((k[at+1]-k[at])*part)) * gain)
		}
	}
	return w
}
