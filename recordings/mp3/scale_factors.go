package mp3

// A factors holds the scale factors of a granule. The factors of long blocks come first. Short
// blocks follow with three factors for each band, one for each window.
type factors struct {
	values  [39 + 3]uint8 // the last band repeats the one before it, as intensity stereo requires
	illegal [39 + 3]bool  // the value is not an intensity position
	long    int           // number of bands of long blocks with a scale factor
	short   int           // first band of short blocks
}

// scaleCounts contains the number of scale factors of each length in MPEG-2, for long, short and
// mixed blocks (ISO 13818-3, 2.4.3.2). The last three rows apply to intensity positions.
var scaleCounts = [6][3][4]int{
	{{6, 5, 5, 5}, {9, 9, 9, 9}, {6, 9, 9, 9}},
	{{6, 5, 7, 3}, {9, 9, 12, 6}, {6, 9, 12, 6}},
	{{11, 10, 0, 0}, {18, 18, 0, 0}, {15, 18, 0, 0}},
	{{7, 7, 7, 0}, {12, 12, 12, 0}, {6, 15, 12, 0}},
	{{6, 6, 6, 3}, {12, 9, 9, 6}, {6, 12, 9, 6}},
	{{8, 8, 5, 0}, {15, 12, 9, 0}, {6, 18, 9, 0}},
}

// boosts holds the values that preflag adds to scale factors of long blocks (ISO 11172-3, table
// B.6).
var boosts = [22]int{11: 1, 1, 1, 1, 2, 2, 3, 3, 3, 2, 0}

// prepare sets the ranges of bands for a layout.
func (f *factors) prepare(l *layout, mpeg1 bool) {
	switch {
	case l.kind != short:
		f.long, f.short = 21, 13
	case !l.mixed:
		f.long, f.short = 0, 0
	case mpeg1:
		f.long, f.short = 8, 3
	default:
		f.long, f.short = 6, 3
	}
}

// count returns the number of scale factors in the bit stream.
func (f *factors) count() int { return f.long + 3*max(0, 12-f.short) }

// read1 reads scale factors of MPEG-1. A group whose bit is set in share keeps the
// values of the first granule.
func (f *factors) read1(r *bitReader, l *layout, share uint8) {
	f.prepare(l, true)
	lengths := scaleLengths[l.compress]
	if l.kind == short {
		lower := f.long + 3*(6-f.short)
		f.take(r, 0, lower, lengths[0])
		f.take(r, lower, f.count(), lengths[1])
	} else {
		borders := [5]int{0, 6, 11, 16, 21}
		for group := range 4 {
			isShared := (share>>(3-group))&1 == 1
			if !isShared {
				f.take(r, borders[group], borders[group+1], lengths[group/2])
			}
		}
	}

	for i := range f.count() {
		f.illegal[i] = f.values[i] >= 7
	}
	f.repeatLast()
}

// read2 reads scale factors of MPEG-2, or intensity positions.
func (f *factors) read2(r *bitReader, l *layout, intensity bool) {
	f.prepare(l, false)
	row, lengths := lengths2(l.compress, intensity)
	l.preflag = row == 2

	block := 0 // column of scaleCounts
	switch {
	case l.mixed:
		block = 2
	case l.kind == short:
		block = 1
	}

	at := 0
	for i, n := range scaleCounts[row][block] {
		f.take(r, at, at+n, lengths[i])
		for k := at; k < at+n; k++ {
			highest := 1<<lengths[i] - 1
			f.illegal[k] = lengths[i] > 0 && int(f.values[k]) == highest
		}
		at += n
	}
	f.repeatLast()
}

// lengths2 returns the lengths of scale factors in MPEG-2, and their row in scaleCounts. It decodes
// them from c, the value of scalefac_compress (ISO 13818-3, 2.4.3.2).
func lengths2(c int, intensity bool) (row int, lengths [4]int) {
	if intensity {
		c >>= 1
		switch {
		case c < 180:
			return 3, [4]int{c / 36, (c % 36) / 6, c % 6}
		case c < 244:
			c -= 180
			return 4, [4]int{c >> 4, (c >> 2) & 3, c & 3}
		}
		c -= 244
		return 5, [4]int{c / 3, c % 3}
	}
	switch {
	case c < 400:
		return 0, [4]int{(c >> 4) / 5, (c >> 4) % 5, (c >> 2) & 3, c & 3}
	case c < 500:
		c -= 400
		return 1, [4]int{(c >> 2) / 5, (c >> 2) % 5, c & 3}
	}
	c -= 500
	return 2, [4]int{c / 3, c % 3}
}

// take reads the values from one index to another.
func (f *factors) take(r *bitReader, from, to, length int) {
	for i := from; i < to; i++ {
		f.values[i] = uint8(r.take(length))
	}
}

// repeatLast sets the values of the last band, which the bit stream does not contain. They are
// used only as intensity positions; as scale factors, they count as 0 (see [layout.scaleLines]).
func (f *factors) repeatLast() {
	n := f.count()
	if f.short >= 12 {
		f.values[n], f.illegal[n] = f.values[n-1], f.illegal[n-1]
		return
	}
	for i := n; i < n+3; i++ {
		f.values[i], f.illegal[i] = f.values[i-3], f.illegal[i-3]
	}
}
