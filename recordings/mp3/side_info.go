package mp3

// A sideInfo is the side information of a frame (ISO 11172-3, 2.4.1.7; ISO 13818-3, 2.4.1.7).
type sideInfo struct {
	back     int          // main_data_begin: bytes of earlier frames in which this frame begins
	share    [2]uint8     // scfsi: groups of scale factors that the second granule takes from the first
	granules [2][2]layout // by number and channel
}

// A layout describes how a granule of one channel is coded.
type layout struct {
	bits      int // part2_3_length
	big       int // number of lines coded in pairs
	gain      int // global_gain
	compress  int // scalefac_compress
	kind      int // window type
	mixed     bool
	tables    [3]int
	ends      [2]int // ends of the first two regions
	subGain   [3]int
	boost     bool // preflag
	scale     int  // scalefac_scale
	quadTable int
}

// readSide reads the side information of a frame. ok is false if no decoder could use it.
func readSide(r *bitReader, h *header, b *bands) (s sideInfo, ok bool) {
	if h.mpeg1() {
		s.back = r.take(9)
		r.take(7 - 2*h.channels) // private bits
		for ch := range h.channels {
			s.share[ch] = uint8(r.take(4))
		}
	} else {
		s.back = r.take(8)
		r.take(h.channels)
	}

	for i := range h.granules() {
		for ch := range h.channels {
			if !s.granules[i][ch].read(r, h, b) {
				return s, false
			}
		}
	}
	return s, true
}

// read reads the layout of a granule. ok is false if it is invalid.
func (l *layout) read(r *bitReader, h *header, b *bands) (ok bool) {
	l.bits, l.big, l.gain = r.take(12), 2*r.take(9), r.take(8)
	if h.mpeg1() {
		l.compress = r.take(4)
	} else {
		l.compress = r.take(9)
	}

	if r.flag() {
		l.kind = r.take(2)
		l.mixed = r.flag() && l.kind == short
		l.tables[0], l.tables[1] = r.take(5), r.take(5)
		for w := range l.subGain {
			l.subGain[w] = r.take(3)
		}
		l.ends = [2]int{b.long[8], 576}
		if l.kind == short {
			l.ends[0] = 3 * b.short[3]
		}
		ok = l.kind != normal
	} else {
		ok = true
		for i := range l.tables {
			l.tables[i] = r.take(5)
		}
		first := r.take(4)
		second := first + 1 + r.take(3)
		l.ends = [2]int{b.long[first+1], b.long[min(second+1, 22)]}
	}

	if h.mpeg1() {
		l.boost = r.flag()
	}
	l.scale, l.quadTable = r.take(1), r.take(1)
	return ok && l.big <= 576
}
