package mp3

// values reads the quantized values of a granule up to the bit at end. It raises them to the power of
// 4/3, keeps their signs, and stores them in to. It returns the number of lines up to the last line
// that may not be 0.
func (t *tables) values(r *bitReader, l *layout, end int, to *[576]float32) int {
	i := 0
	for region, edge := range [3]int{l.regionEnds[0], l.regionEnds[1], l.pairLines} {
		edge = min(edge, l.pairLines)
		book := t.pairs[l.tables[region]]
		if book == nil {
			clear(to[i:max(i, edge)])
			i = max(i, edge)
			continue
		}
		linbits := books[l.tables[region]].linbits
		for ; i < edge && r.at < end; i += 2 {
			pair, length := book.find(r.peek())
			r.at += length
			first, second := pair>>4, pair&15
			to[i] = t.value(r, first, linbits)
			to[i+1] = t.value(r, second, linbits)
		}
	}

	// Values of at most 1 follow in groups of four. A group that extends beyond the end is ignored.
	book := &t.quads[l.quadTable]
	for i <= len(to)-4 && r.at < end {
		four, length := book.find(r.peek())
		r.at += length
		for k := range 4 {
			bit := (four >> (3 - k)) & 1
			to[i+k] = t.value(r, bit, 0)
		}
		if r.at > end {
			break
		}
		i += 4
	}
	clear(to[i:])
	return i
}

// value completes a value whose code has been read.
func (t *tables) value(r *bitReader, v, linbits int) float32 {
	if v == 0 {
		return 0
	}
	if v == 15 && linbits > 0 {
		v += r.take(linbits)
	}
	if r.flag() {
		return -t.powers[v]
	}
	return t.powers[v]
}

// levelsFrom is the exponent, in quarters of a power of 2, of the first level.
const levelsFrom = -512

// levelsOf contains the factors 2^(n/4) for exponents from levelsFrom on.
var levelsOf = allLevels()

func allLevels() (l [1024]float32) {
	for i := range l {
		l[i] = float32(exp2(4 * (i + levelsFrom)))
	}
	return l
}

// scaleLines multiplies the values of a granule by the factors of their bands. The result has the
// unit of 16-bit samples.
func (l *layout) scaleLines(f *factors, b *bands, lines *[576]float32) {
	step := 2 << l.scale // quarters of a power of 2 for a step of a scale factor
	base := l.gain - unit

	from := 0
	for band := range f.long + 1 {
		to := 576
		if band < 22 {
			to = b.long[band+1]
		}
		if band == f.long && l.kind == short {
			break
		}

		factor := 0
		if band < f.long {
			factor = int(f.values[band])
			if l.preflag {
				factor += boosts[band]
			}
		}
		multiply(lines[from:to], base-step*factor)
		from = to
	}

	if l.kind != short {
		return
	}

	for band := f.short; band < 13; band++ {
		width := b.short[band+1] - b.short[band]
		for w := range 3 {
			factor := 0
			if band < 12 {
				factor = int(f.values[f.long+3*(band-f.short)+w])
			}
			multiply(lines[from:from+width], base-8*l.subGain[w]-step*factor)
			from += width
		}
	}
}

// multiply multiplies lines by 2^(exponent/4).
func multiply(lines []float32, exponent int) {
	factor := levelsOf[exponent-levelsFrom]
	for i, v := range lines {
		lines[i] = float32(v * factor)
	}
}
