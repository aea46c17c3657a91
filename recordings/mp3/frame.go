package mp3

// An encoder encodes frames. It reuses its memory for all frames. If frames are requested in order,
// it also reuses the subbands of the last granule.
type encoder struct {
	f    *format
	in   *input
	subs [2][2][32][18]float32 // by parity of the granule number and by channel
	last int64                 // the last granule in subs
	gr   [2][2]granule         // granules of a frame by number and channel

	attacks attacks
	gain    int // argument of the last quantize
}

func newEncoder(f *format, src Source) *encoder {
	in := newInput(src, 2*(history+576))
	return &encoder{
		f:       f,
		in:      in,
		last:    -3, // not the granule before any granule of the audio
		attacks: attacks{in: in, channels: f.channels, recent: recentParts(f.rate)},
	}
}

// frame encodes audio frame n into buf, which has the frame's length. The frame with the tag is not
// counted.
func (e *encoder) frame(n int64, padded bool, buf []byte) error {
	for i := range e.f.granules {
		if err := e.analyze(n*int64(e.f.granules)+int64(i), &e.gr[i]); err != nil {
			return err
		}
	}
	e.chooseGain(8 * (len(buf) - 4 - e.f.sideInfo()))
	e.write(padded, buf)
	return nil
}

// analyze computes the lines of granule n for each channel.
func (e *encoder) analyze(n int64, to *[2]granule) error {
	if e.last != n-1 {
		if err := e.split(n - 1); err != nil {
			return err
		}
	}
	if err := e.split(n); err != nil {
		return err
	}

	for ch := range e.f.channels {
		kind, err := e.attacks.kind(n, ch)
		if err != nil {
			return err
		}
		to[ch].transform(kind, &e.f.bands, &e.subs[(n+1)&1][ch], &e.subs[n&1][ch])
		to[ch].computeMags()
		to[ch].shape(e.f.mpeg1())
		to[ch].findMinGain()
	}
	return nil
}

// split computes the subbands of granule n.
func (e *encoder) split(n int64) error {
	for ch := range e.f.channels {
		pcm, err := e.in.samples(ch, 576*n-lead-history, history+576)
		if err != nil {
			return err
		}
		polyphase((*[history + 576]float32)(pcm), &e.subs[n&1][ch])
	}
	e.last = n
	return nil
}

// chooseGain finds the lowest gain at which all granules together take at most the given number of
// bits. The granules use the same gain, except for their offsets. The search starts at an estimate
// from the energies, so that the result depends only on the frame.
func (e *encoder) chooseGain(bits int) {
	lo, hi := -100, 255 // lo is too low, hi is high enough
	at := e.guess(bits)
	for tries := 0; hi-lo > 1; tries++ {
		lines, sum, least := e.quantize(at)
		if sum <= bits {
			hi = at
			if least {
				break
			}
		} else {
			lo = at
		}

		// One step of the gain saves a quarter of a bit for each line that is not 0.
		step := 4 * (sum - bits) / max(100, lines)
		if sum > bits {
			step = max(step, 1)
		}

		// After a few estimates, use bisection to end the search.
		at += step
		if tries > 3 {
			at = (lo + hi) / 2
		}
		at = max(lo+1, min(hi-1, at))
	}

	if e.gain != hi {
		e.quantize(hi)
	}
}

// guess estimates the gain at which the bands take the given number of bits. It assumes that a line
// takes half a bit more than the logarithm of its ratio to the noise, but at least 0 bits.
func (e *encoder) guess(bits int) int {
	noise := float32(-1e9) // logarithm of the noise, without the part that depends on the band
	for range 4 {
		sum, lines := float32(-bits), float32(0)
		for i := range e.f.granules {
			for ch := range e.f.channels {
				g := &e.gr[i][ch]
				for b, height := range g.heights[:len(g.edges)-1] {
					if height > noise {
						width := float32(g.edges[b+1] - g.edges[b])
						lines += width
						sum += float32(width * height)
					}
				}
			}
		}

		if lines == 0 {
			break
		}
		noise = sum / lines
	}
	return unit + int(max(-200, min(100, float32(4*noise))))
}

// quantize quantizes all granules with a gain. lines is the number of lines coded in pairs, and sum
// is the number of bits of all granules. least reports whether every granule has reached its lowest
// gain.
func (e *encoder) quantize(gain int) (lines, sum int, least bool) {
	e.gain = gain
	least = true
	for i := range e.f.granules {
		for ch := range e.f.channels {
			g := &e.gr[i][ch]
			g.quantize(min(255, max(g.minGain, gain+g.offset)))
			least = least && g.gain == g.minGain
			if g.bits > maxBits {
				sum += 1 << 20 // more than any frame has, so that the gain counts as too low
			}

			lines += g.big
			sum += g.bits
		}
	}
	return lines, sum, least
}

// write writes the frame (ISO 11172-3, 2.4.1).
func (e *encoder) write(padded bool, buf []byte) {
	w := newBitWriter(buf)
	w.put(e.f.header(padded), 32)
	if e.f.mpeg1() {
		w.put(0, 9)                // main_data_begin
		w.put(0, 7-2*e.f.channels) // private bits
		w.put(0, 4*e.f.channels)   // scfsi
	} else {
		w.put(0, 8)            // main_data_begin
		w.put(0, e.f.channels) // private bits
	}

	for i := range e.f.granules {
		for ch := range e.f.channels {
			e.gr[i][ch].writeSide(&w, e.f.mpeg1())
		}
	}

	for i := range e.f.granules {
		for ch := range e.f.channels {
			g := &e.gr[i][ch]
			g.writeValues(&w)
		}
	}
	w.end()
}

// writeSide writes the side information of a granule.
func (g *granule) writeSide(w *bitWriter, mpeg1 bool) {
	w.put(uint32(g.bits), 12)
	w.put(uint32(g.big/2), 9)
	w.put(uint32(g.gain), 8)
	if mpeg1 {
		w.put(uint32(g.compress), 4)
	} else {
		w.put(uint32(g.compress), 9)
	}

	if g.kind == normal {
		w.put(0, 1) // window_switching_flag
		for _, t := range g.tables {
			w.put(uint32(t), 5)
		}
		w.put(uint32(g.regions[0]), 4)
		w.put(uint32(g.regions[1]), 3)
	} else {
		w.put(1, 1) // window_switching_flag
		w.put(uint32(g.kind), 2)
		w.put(0, 1) // mixed_block_flag
		w.put(uint32(g.tables[0]), 5)
		w.put(uint32(g.tables[1]), 5)
		for _, s := range g.subGain {
			w.put(uint32(s), 3)
		}
	}

	if mpeg1 {
		w.put(0, 1) // preflag
	}
	w.put(uint32(g.scale), 1)
	w.put(uint32(g.quadTable), 1)
}

// writeValues writes the scale factors and Huffman codes of a granule.
func (g *granule) writeValues(w *bitWriter) {
	from := 0
	for i := range g.groups {
		for ; from < g.groups[i].to; from++ {
			w.put(uint32(g.sf[from]), g.groups[i].length)
		}
	}

	from = 0
	for i, to := range [3]int{g.ends[0], g.ends[1], g.big} {
		if g.tables[i] != 0 {
			g.writePairs(w, from, to, &books[g.tables[i]])
		}
		from = to
	}

	codes := &quads[g.quadTable]
	for ; from < g.quads; from += 4 {
		v := 0
		for i := range 4 {
			v = v<<1 | int(g.q[from+i])
		}
		w.put(codes[v].bits, int(codes[v].len))
		for i := range 4 {
			if g.q[from+i] != 0 {
				w.put(g.sign(from+i), 1)
			}
		}
	}
}

// sign returns 1 if line i is negative, and otherwise 0.
func (g *granule) sign(i int) uint32 {
	if g.lines[i] < 0 {
		return 1
	}
	return 0
}

func (g *granule) writePairs(w *bitWriter, from, to int, b *book) {
	for i := from; i < to; i += 2 {
		x, y := int(g.q[i]), int(g.q[i+1])
		c := b.codes[min(x, 15)<<4|min(y, 15)]
		w.put(c.bits, int(c.len))
		g.writeRest(w, i, x, b.linbits)
		g.writeRest(w, i+1, y, b.linbits)
	}
}

// writeRest writes the parts of value x that its code does not contain. These are the excess over
// 15 and the sign.
func (g *granule) writeRest(w *bitWriter, i, x, linbits int) {
	if x >= 15 && linbits > 0 {
		w.put(uint32(x-15), linbits)
	}
	if x != 0 {
		w.put(g.sign(i), 1)
	}
}
