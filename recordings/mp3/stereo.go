package mp3

// rootHalf is 1/√2.
var rootHalf = float32(exp2(-8))

// intensity1 contains the factors of both channels by intensity position in MPEG-1 (ISO 11172-3,
// 2.4.3.4.9.3). With r = tan(position·π/12), they are r/(1+r) and 1/(1+r).
var intensity1 = func() (f [7][2]float32) {
	for i := range f {
		s, c := sinPi(i, 12), cosPi(i, 12)
		f[i] = [2]float32{float32(s / (s + c)), float32(c / (s + c))}
	}
	return f
}()

// A stereo joins the two channels of a granule.
type stereo struct {
	middle    bool // the channels are middle and side
	intensity bool
	mpeg1     bool
	left      *[576]float32
	right     *[576]float32
}

// join computes the left and right channels. l and f belong to the right channel, whose scale
// factors contain the intensity positions.
func (s *stereo) join(l *layout, f *factors, b *bands) {
	if !s.intensity {
		s.unmix(0, 576)
		return
	}

	// Intensity applies to the bands above the last band in which the right channel is not 0.
	end := 576
	var found [3]bool
	if l.kind == short {
		for band := 12; band >= f.short; band-- {
			width := b.short[band+1] - b.short[band]
			index := f.long + 3*(min(band, 11)-f.short)
			for w := 2; w >= 0; w-- {
				s.band(&found[w], end-width, end, f, index+w, l.compress)
				end -= width
			}
		}
	}

	rest := found[0] || found[1] || found[2]
	last := f.long - 1
	if l.kind != short {
		last = 21
	}
	for band := last; band >= 0; band-- {
		s.band(&rest, b.long[band], end, f, min(band, 20), l.compress)
		end = b.long[band]
	}
}

// band joins the lines of a band. found is true if the right channel is not 0 in a higher band. band
// sets it if the right channel is not 0 in this band.
func (s *stereo) band(found *bool, from, to int, f *factors, index, compress int) {
	for _, v := range s.right[from:to] {
		*found = *found || v != 0
	}
	if *found || f.illegal[index] {
		s.unmix(from, to)
		return
	}
	left, right := s.factors(int(f.values[index]), compress)
	for i := from; i < to; i++ {
		s.right[i] = float32(s.left[i] * right)
		s.left[i] = float32(s.left[i] * left)
	}
}

// factors returns the factors for an intensity position.
func (s *stereo) factors(position, compress int) (left, right float32) {
	if s.mpeg1 {
		return intensity1[position][0], intensity1[position][1]
	}

	// ISO 13818-3, 2.4.3.2: powers of 2^(-1/4) or of 2^(-1/2).
	step := 1 + compress&1
	factor := levelsOf[-levelsFrom-step*((position+1)/2)]
	if position&1 == 1 {
		return factor, 1
	}
	return 1, factor
}

// unmix converts middle and side to left and right.
func (s *stereo) unmix(from, to int) {
	if !s.middle {
		return
	}
	for i := from; i < to; i++ {
		m, d := s.left[i], s.right[i]
		s.left[i] = float32((m + d) * rootHalf)
		s.right[i] = float32((m - d) * rootHalf)
	}
}
