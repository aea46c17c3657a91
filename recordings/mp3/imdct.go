package mp3

// longWindows contains the windows of long blocks by type.
var longWindows = func() (w [4][36]float32) {
	for kind := range w {
		for i := range w[kind] {
			w[kind][i] = float32(longWindow(kind, i))
		}
	}
	return w
}()

// turns holds the factors that turn a DCT-IV of 18 values into a DCT-II.
var turns = func() (t [18]float32) {
	for n := range t {
		t[n] = float32(2 * cosPi(2*n+1, 72))
	}
	return t
}()

// imdct36 transforms the lines of a subband into 36 samples. It adds the first 18 samples to the
// samples that the previous granule left in rest (ISO 11172-3, 2.4.3.4.10).
func imdct36(lines *[18]float32, kind int, rest, out *[18]float32) {
	var e, o [9]float32
	for n := range 9 {
		x := float32(lines[n] * turns[n])
		y := float32(lines[17-n] * turns[17-n])
		e[n] = x + y
		o[n] = float32((x - y) * mdctHalves[n])
	}
	var d [18]float32
	finish36(&e, &o, &d)

	w := &longWindows[kind]
	for i := range 9 {
		out[i] = rest[i] + float32(d[9+i]*w[i])
		out[9+i] = rest[9+i] - float32(d[17-i]*w[9+i])
		rest[i] = -float32(d[8-i] * w[18+i])
		rest[9+i] = -float32(d[i] * w[27+i])
	}
}

// shortInverse holds the factors of the transform of short blocks, multiplied by their window.
var shortInverse = func() (m [12][6]float32) {
	for i := range m {
		for k := range m[i] {
			m[i][k] = float32(cosPi((2*i+7)*(2*k+1), 24) * sinPi(2*i+1, 24))
		}
	}
	return m
}()

// imdct12 is like imdct36, for three short blocks whose lines are interleaved.
func imdct12(lines *[18]float32, rest, out *[18]float32) {
	var sum [36]float32
	copy(sum[:], rest[:])
	for w := range 3 {
		for i := range 12 {
			m := &shortInverse[i]
			a := float32(lines[w]*m[0]) + float32(lines[3+w]*m[1])
			b := float32(lines[6+w]*m[2]) + float32(lines[9+w]*m[3])
			c := float32(lines[12+w]*m[4]) + float32(lines[15+w]*m[5])
			sum[6+6*w+i] += a + b + c
		}
	}
	copy(out[:], sum[:18])
	copy(rest[:], sum[18:])
}

// realias restores the aliasing between the first n pairs of neighboring subbands. The synthesis
// filterbank expects this aliasing.
func realias(lines *[576]float32, n int) {
	for sb := 18; sb <= 18*n; sb += 18 {
		x := (*[16]float32)(lines[sb-8:])
		for i := range 8 {
			lower, upper := x[7-i], x[8+i]
			x[7-i] = float32(lower*antiCS[i]) - float32(upper*antiCA[i])
			x[8+i] = float32(upper*antiCS[i]) + float32(lower*antiCA[i])
		}
	}
}

// interleave orders the lines of short blocks by frequency: line k of window w becomes line 3k+w.
func interleave(lines *[576]float32, first int, b *bands) {
	var to [576]float32
	i := 3 * b.short[first]
	start := i
	for band := first; band < 13; band++ {
		for w := range 3 {
			for k := b.short[band]; k < b.short[band+1]; k++ {
				to[3*k+w] = lines[i]
				i++
			}
		}
	}
	copy(lines[start:], to[start:])
}
