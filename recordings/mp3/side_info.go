package mp3

// A sideInfo is the side information of a frame (ISO 11172-3, 2.4.1.7; ISO 13818-3, 2.4.1.7). The
// comments on fields begin with the name in the standard.
type sideInfo struct {
	mainDataBegin int          // main_data_begin: how many bytes of earlier frames belong to this frame
	sharedFactors [2]uint8     // scfsi: groups of scale factors that granule 1 takes from granule 0, by channel
	granules      [2][2]layout // by number and channel
}

// A layout describes how a granule of one channel is coded. A granule has 576 lines, one for each
// frequency. They are coded in pairs (big_values), and then in groups of four (count1). The pairs
// consist of three regions, each with its own Huffman table.
type layout struct {
	bits       int    // part2_3_length: length of the scale factors and lines
	pairLines  int    // 2·big_values: number of lines coded in pairs
	gain       int    // global_gain: factor of all lines, as an exponent of 2, in quarters
	compress   int    // scalefac_compress: lengths of the scale factors
	kind       int    // block_type: normal, start, short or stop
	mixed      bool   // mixed_block_flag: the lowest lines have long blocks, although kind is short
	tables     [3]int // table_select, by region
	regionEnds [2]int // ends of the first two regions; the third contains the remaining pairs
	subGain    [3]int // subblock_gain, by window of short blocks
	preflag    bool   // preflag: whether boosts are added to the scale factors; in MPEG-2, read2 sets it
	scale      int    // scalefac_scale: step between scale factors, 0 or 1
	quadTable  int    // count1table_select: table of the groups of four
}

// granuleLines is the number of lines in a granule.
const granuleLines = 576

// If the window is not normal, the side information does not contain the end of the first region.
// The region then consists of this many bands.
const (
	firstRegionLongBands  = 8 // bands of long blocks
	firstRegionShortBands = 3 // bands of short blocks, in all three windows
)

// readSide reads the side information of a frame. ok is false if no decoder could use it.
func readSide(r *bitReader, h *header, b *bands) (s sideInfo, ok bool) {
	isStereo := h.channels == 2
	if h.mpeg1() {
		s.mainDataBegin = r.take(9)
		privateBits := 5
		if isStereo {
			privateBits = 3
		}
		r.take(privateBits)
		for ch := range h.channels {
			s.sharedFactors[ch] = uint8(r.take(4))
		}
	} else {
		s.mainDataBegin = r.take(8)
		privateBits := 1
		if isStereo {
			privateBits = 2
		}
		r.take(privateBits)
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

// read reads the layout of a granule. It reports whether the layout is valid.
func (l *layout) read(r *bitReader, h *header, b *bands) bool {
	l.bits = r.take(12)
	l.pairLines = 2 * r.take(9)
	l.gain = r.take(8)
	if h.mpeg1() {
		l.compress = r.take(4)
	} else {
		l.compress = r.take(9)
	}

	isSwitched := r.flag() // window_switching_flag: the window is not normal
	if isSwitched {
		l.readWindow(r, b)
	} else {
		l.readRegions(r, b)
	}

	if h.mpeg1() {
		l.preflag = r.flag()
	}
	l.scale = r.take(1)
	l.quadTable = r.take(1)

	isForbidden := isSwitched && l.kind == normal
	return !isForbidden && l.pairLines <= granuleLines
}

// readWindow reads the window and the tables of a granule whose window is not normal. All pairs
// belong to two regions.
func (l *layout) readWindow(r *bitReader, b *bands) {
	l.kind = r.take(2)
	isMixed := r.flag()
	l.mixed = isMixed && l.kind == short
	l.tables[0] = r.take(5)
	l.tables[1] = r.take(5)
	for w := range l.subGain {
		l.subGain[w] = r.take(3)
	}

	l.regionEnds[0] = b.long[firstRegionLongBands]
	if l.kind == short {
		l.regionEnds[0] = len(l.subGain) * b.short[firstRegionShortBands]
	}
	l.regionEnds[1] = granuleLines
}

// readRegions reads the tables and the regions of a granule with a normal window.
func (l *layout) readRegions(r *bitReader, b *bands) {
	for i := range l.tables {
		l.tables[i] = r.take(5)
	}

	// region0_count and region1_count are one less than the numbers of bands in the first two
	// regions. Together, the two regions may have more bands than there are.
	firstBands := r.take(4) + 1
	secondBands := r.take(3) + 1
	allBands := len(b.long) - 1
	l.regionEnds[0] = b.long[firstBands]
	l.regionEnds[1] = b.long[min(firstBands+secondBands, allBands)]
}
