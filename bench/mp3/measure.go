package main

import (
	"math"
	"math/cmplx"
)

// A figure measures how close a decoded clip is to the original.
type figure struct {
	segmental float64 // mean signal-to-noise ratio of 20 ms segments in dB, each limited to -10 to 35
	overall   float64 // signal-to-noise ratio in dB
	spectral  float64 // mean log-spectral distance in dB, over windows of at least 32 ms
}

func measure(original, decoded *clip) figure {
	x, y := floats(original), floats(decoded)
	y = append(y, make([]float64, max(0, len(x)-len(y)))...)[:len(x)]
	return figure{
		segmental: segmental(x, y, original.rate/50),
		overall:   ratio(x, y),
		spectral:  distance(x, y, original.rate),
	}
}

func floats(c *clip) []float64 {
	x := make([]float64, len(c.samples))
	for i, v := range c.samples {
		x[i] = float64(v)
	}
	return x
}

func ratio(x, y []float64) float64 {
	signal, noise := 0.0, 1e-9
	for i := range x {
		signal += x[i] * x[i]
		noise += (x[i] - y[i]) * (x[i] - y[i])
	}
	return 10 * math.Log10(signal/noise)
}

// segmental returns the segmental signal-to-noise ratio. It skips inaudible segments, whose level
// is more than 60 dB below full scale.
func segmental(x, y []float64, length int) float64 {
	sum, n := 0.0, 0
	for i := 0; i+length <= len(x); i += length {
		power := 0.0
		for _, v := range x[i : i+length] {
			power += v * v
		}
		if power/float64(length) < 32768*32768*1e-6 {
			continue
		}
		sum += max(-10, min(35, ratio(x[i:i+length], y[i:i+length])))
		n++
	}
	return sum / float64(max(n, 1))
}

// distance returns the log-spectral distance. It ignores differences that are smaller than the
// quantization noise of 16-bit samples.
func distance(x, y []float64, rate int) float64 {
	size := 256
	for size*1000 < 32*rate {
		size *= 2
	}

	sum, n := 0.0, 0
	for i := 0; i+size <= len(x); i += size / 2 {
		a, b := spectrum(x[i:i+size]), spectrum(y[i:i+size])
		d := 0.0
		for k := 1; k < size/2; k++ {
			e := 10 * math.Log10((a[k]+float64(size)/4)/(b[k]+float64(size)/4))
			d += e * e
		}
		sum += math.Sqrt(d / float64(size/2-1))
		n++
	}
	return sum / float64(max(n, 1))
}

// spectrum returns the power spectrum of a windowed segment.
func spectrum(x []float64) []float64 {
	z := make([]complex128, len(x))
	for i, v := range x {
		z[i] = complex(v*(0.5-0.5*math.Cos(2*math.Pi*float64(i)/float64(len(x)))), 0)
	}
	fft(z)
	p := make([]float64, len(x)/2)
	for i := range p {
		p[i] = real(z[i])*real(z[i]) + imag(z[i])*imag(z[i])
	}
	return p
}

func fft(z []complex128) {
	n := len(z)
	if n == 1 {
		return
	}
	even, odd := make([]complex128, n/2), make([]complex128, n/2)
	for i := range even {
		even[i], odd[i] = z[2*i], z[2*i+1]
	}
	fft(even)
	fft(odd)
	for i := range even {
		t := cmplx.Rect(1, -2*math.Pi*float64(i)/float64(n)) * odd[i]
		z[i], z[i+n/2] = even[i]+t, even[i]-t
	}
}
