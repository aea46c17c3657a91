package mp3

import "math"

// Window types of a granule (block_type in ISO 11172-3, 2.4.2.7).
const (
	normal = iota
	start
	short
	stop
)

// A folding is a window, multiplied by the factors that turn a DCT-IV into a DCT-II.
type folding struct{ a, b, c, d [9]float32 }

var (
	foldings   = [4]folding{normal: fold(normal), start: fold(start), stop: fold(stop)}
	mdctHalves = halves()
	shortFold  = foldShort()
	shortDCT   = shortMatrix()
)

// longWindow returns sample i of the 36-sample window for a block type (2.4.3.4.10.3).
func longWindow(kind, i int) float64 {
	switch {
	case kind == start && i >= 18 && i < 24, kind == stop && i >= 12 && i < 18:
		return 1
	case kind == start && i >= 30, kind == stop && i < 6:
		return 0
	case kind == start && i >= 24:
		return sinPi(2*(i-18)+1, 24)
	case kind == stop && i < 12:
		return sinPi(2*(i-6)+1, 24)
	}
	return sinPi(2*i+1, 72)
}

// fold returns the factors for the four quarters a, b, c and d of a block. The MDCT of the block is
// the DCT-IV of (-c reversed - d, a - b reversed).
func fold(kind int) (f folding) {
	for n := range 9 {
		first := float64(2*cosPi(2*n+1, 72)) / 9
		second := float64(2*cosPi(2*(n+9)+1, 72)) / 9
		f.c[n] = float32(-float64(longWindow(kind, 26-n) * first))
		f.d[n] = float32(-float64(longWindow(kind, 27+n) * first))
		f.a[n] = float32(float64(longWindow(kind, n) * second))
		f.b[n] = float32(-float64(longWindow(kind, 17-n) * second))
	}
	return f
}

func halves() (h [9]float32) {
	for n := range h {
		h[n] = float32(2 * cosPi(2*n+1, 36))
	}
	return h
}

// mdct36 transforms 36 samples. before holds the first half of them, and now holds the second half.
func mdct36(before, now *[18]float32, f *folding, out *[18]float32) {
	var e, o [9]float32
	for n := range 9 {
		x := float32(now[8-n]*f.c[n]) + float32(now[9+n]*f.d[n])
		// The counterpart of value n is value 17-n, which has index 8-n in the other half.
		y := float32(before[8-n]*f.a[8-n]) + float32(before[9+n]*f.b[8-n])
		e[n] = x + y
		o[n] = float32((x - y) * mdctHalves[n])
	}

	finish36(&e, &o, out)
}

// finish36 completes a DCT-IV of 18 values, which are the sums e and the differences o of values of
// a DCT-II.
func finish36(e, o *[9]float32, out *[18]float32) {
	var even, odd [9]float32
	dct9(e, &even)
	dct9(o, &odd)

	// Each step of the recursion computes one line from the sum of two lines.
	last := float32(odd[0] * 0.5)
	line := float32(even[0] * 0.5)
	out[0] = line
	line = last - line
	out[1] = line
	for k := 1; k < 9; k++ {
		line = even[k] - line
		out[2*k] = line
		last = odd[k] - last
		line = last - line
		out[2*k+1] = line
	}
}

var (
	cos20, cos40, cos80        = float32(cosPi(1, 9)), float32(cosPi(2, 9)), float32(cosPi(4, 9))
	cos10, cos30, cos50, cos70 = float32(cosPi(1, 18)), float32(cosPi(3, 18)), float32(cosPi(5,
		18)), float32(cosPi(7, 18))
)

// dct9 computes s[k] = Σ v[n]·cos((2n+1)kπ/18).
func dct9(v, s *[9]float32) {
	a0, b0 := v[0]+v[8], v[0]-v[8]
	a1, b1 := v[1]+v[7], v[1]-v[7]
	a2, b2 := v[2]+v[6], v[2]-v[6]
	a3, b3 := v[3]+v[5], v[3]-v[5]
	sum := a0 + a2 + a3
	s[0] = sum + a1 + v[4]
	s[6] = float32(0.5*sum) - a1 - v[4]
	d := float32(0.5*a1) - v[4]
	s[2] = float32(a0*cos20) - float32(a2*cos80) - float32(a3*cos40) + d
	s[4] = float32(a0*cos40) - float32(a2*cos20) + float32(a3*cos80) - d
	s[8] = float32(a0*cos80) + float32(a2*cos40) - float32(a3*cos20) - d
	s[3] = float32((b0 - b2 - b3) * cos30)
	m := float32(b1 * cos30)
	s[1] = float32(b0*cos10) + m + float32(b2*cos50) + float32(b3*cos70)
	s[5] = float32(b0*cos50) - m - float32(b2*cos70) + float32(b3*cos10)
	s[7] = float32(b0*cos70) - m + float32(b2*cos10) - float32(b3*cos50)
}

// foldShort returns the 12-sample window.
func foldShort() (w [12]float32) {
	for i := range w {
		w[i] = float32(sinPi(2*i+1, 24))
	}
	return w
}

func shortMatrix() (m [6][6]float32) {
	for i := range m {
		for n := range m[i] {
			m[i][n] = float32(cosPi((2*i+1)*(2*n+1), 24) / 3)
		}
	}
	return m
}

// mdct12 transforms three overlapping blocks, each with 12 of the 36 samples. Their lines are
// interleaved in out: line k of block w is out[3k+w].
func mdct12(before, now *[18]float32, out *[18]float32) {
	var z [36]float32
	copy(z[:18], before[:])
	copy(z[18:], now[:])
	for w := range 3 {
		x := (*[12]float32)(z[6+6*w:])
		var u [6]float32
		for n := range 3 {
			u[n] = -float32(x[8-n]*shortFold[8-n]) - float32(x[9+n]*shortFold[9+n])
			u[n+3] = float32(x[n]*shortFold[n]) - float32(x[5-n]*shortFold[5-n])
		}

		for k := range 6 {
			m := &shortDCT[k]
			a := float32(u[0]*m[0]) + float32(u[1]*m[1])
			b := float32(u[2]*m[2]) + float32(u[3]*m[3])
			c := float32(u[4]*m[4]) + float32(u[5]*m[5])
			out[3*k+w] = a + b + c
		}
	}
}

// antiCS and antiCA are the butterfly factors between neighboring subbands.
var antiCS, antiCA = butterflies()

// butterflies returns cs = 1/√(1+c²) and ca = c/√(1+c²) (2.4.3.4.10.1).
func butterflies() (cs, ca [8]float32) {
	for i, c := range []float64{-0.6, -0.535, -0.33, -0.185, -0.095, -0.041, -0.0142, -0.0037} {
		root := math.Sqrt(1 + float64(c*c))
		cs[i], ca[i] = float32(1/root), float32(c/root)
	}
	return cs, ca
}

// antialias removes the aliasing between neighboring subbands, which the overlap of their filters
// causes.
func antialias(lines *[576]float32) {
	for sb := 18; sb < 576; sb += 18 {
		x := (*[16]float32)(lines[sb-8:])
		for i := range 8 {
			lower, upper := x[7-i], x[8+i]
			x[7-i] = float32(lower*antiCS[i]) + float32(upper*antiCA[i])
			x[8+i] = float32(upper*antiCS[i]) - float32(lower*antiCA[i])
		}
	}
}

// transform computes the lines of a granule from its subbands (now) and those of the previous
// granule (before).
func (g *granule) transform(kind int, b *bands, before, now *[32][18]float32) {
	g.kind = kind
	if kind != short {
		for sb := range 32 {
			mdct36(&before[sb], &now[sb], &foldings[kind], (*[18]float32)(g.lines[18*sb:]))
		}
		antialias(&g.lines)
		g.edges, g.first = b.long[:], b.regionLong
		return
	}
	for sb := range 32 {
		mdct12(&before[sb], &now[sb], (*[18]float32)(g.mags[18*sb:]))
	}

	// The lines of short blocks are ordered by band, then by window.
	i := 0
	for s := range 13 {
		for w := range 3 {
			for k := b.short[s]; k < b.short[s+1]; k++ {
				g.lines[i] = g.mags[3*k+w]
				i++
			}
		}
	}
	g.edges, g.first = b.triple[:], b.regionShort
}
