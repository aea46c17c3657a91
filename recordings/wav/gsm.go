package wav

import "encoding/binary"

// The tables of GSM 06.10 (ETS 300 961, tables 5.1, 5.3 and 5.4).
var (
	gsmB    = [8]int32{0, 0, 2048, -2560, 94, -1792, -341, -1144}
	gsmMIC  = [8]int32{-32, -32, -16, -16, -8, -8, -4, -4}
	gsmINVA = [8]int32{13107, 13107, 13107, 13107, 19223, 17476, 31454, 29708}
	gsmQLB  = [4]int32{3277, 11469, 21299, 32767}
	gsmFAC  = [8]int32{18431, 20479, 22527, 24575, 26623, 28671, 30719, 32767}
)

// gsmLARBits and gsmSubBits contain the number of bits of each parameter in a GSM frame. A frame
// has eight log area ratios and four sub-frames. Each sub-frame has a lag, a gain, a grid, a block
// maximum and thirteen pulses.
var (
	gsmLARBits = [8]uint{6, 6, 5, 5, 4, 4, 3, 3}
	gsmSubBits = [4]uint{7, 2, 2, 6}
)

// gsmParts contains the first sample of each part of a frame. Each part has its own coefficients
// (table 5.2.9.1).
var gsmParts = [4]int{0, 13, 27, 40}

// The sizes of GSM 06.10.
const (
	gsmFrame    = 160 // samples per frame
	gsmSubFrame = 40
	gsmMinLag   = 40
	gsmMaxLag   = 120
	gsmBytes    = 33 // bytes of a single frame, which begins with gsmMagic
	gsmMagic    = 0xD
)

// A gsm decodes GSM 06.10 full rate, bit-exact to ETS 300 961, section 5.3.
type gsm struct {
	wav49 bool // two frames in 65 bytes, least significant bit first
	bits  bitReader

	// The state that one frame passes to the next.
	residual [gsmMaxLag + gsmFrame]int32 // drp: the last 120 samples, then those of this frame
	lag      int32                       // nrp
	ratios   [8]int32                    // LARpp of the last frame
	filter   [8]int32                    // v
	output   int32                       // msr
}

func (g *gsm) reset() { *g = gsm{wav49: g.wav49, lag: gsmMinLag} }

// save appends the state to b.
func (g *gsm) save(b []byte) []byte {
	b = appendInts(b, g.residual[:gsmMaxLag])
	b = appendInts(b, g.ratios[:])
	b = appendInts(b, g.filter[:])
	return appendInts(b, []int32{g.lag, g.output})
}

// restore restores a state that was written by save.
func (g *gsm) restore(b []byte) {
	b = takeInts(b, g.residual[:gsmMaxLag])
	b = takeInts(b, g.ratios[:])
	b = takeInts(b, g.filter[:])
	var last [2]int32
	takeInts(b, last[:])
	g.lag, g.output = min(max(last[0], gsmMinLag), gsmMaxLag), last[1]
}

// appendInts appends values to b as 16-bit numbers.
func appendInts(b []byte, values []int32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

// takeInts reads numbers that were written by appendInts, and returns the rest of b.
func takeInts(b []byte, values []int32) []byte {
	for i := range values {
		values[i] = int32(int16(binary.LittleEndian.Uint16(b[2*i:])))
	}
	return b[2*len(values):]
}

// block decodes one frame from 33 bytes, or two frames from 65 bytes.
func (g *gsm) block(dst []int16, src []byte) {
	g.bits = bitReader{src: src, low: g.wav49}
	if g.wav49 {
		g.frame(dst[:gsmFrame])
		dst = dst[gsmFrame:]
	} else {
		g.bits.take(4)
	}
	g.frame(dst)
}

// frame decodes 160 samples.
func (g *gsm) frame(dst []int16) {
	var ratios [8]int32
	for i, n := range gsmLARBits {
		scaled := sat((int32(g.bits.take(n)) + gsmMIC[i]) << 10)
		scaled = multRound(gsmINVA[i], sat(scaled-gsmB[i]<<1))
		ratios[i] = sat(scaled + scaled)
	}
	for i := range 4 {
		g.subFrame(g.residual[:gsmMaxLag+(i+1)*gsmSubFrame])
	}
	g.shortTerm(dst, &ratios)
	copy(g.residual[:gsmMaxLag], g.residual[gsmFrame:])
}

// subFrame decodes the pulses of a sub-frame and adds the long-term prediction (sections 5.3.1 and
// 5.3.2). It fills the last 40 samples of residual.
func (g *gsm) subFrame(residual []int32) {
	var fields [4]int32
	for i, n := range gsmSubBits {
		fields[i] = int32(g.bits.take(n))
	}
	if fields[0] >= gsmMinLag && fields[0] <= gsmMaxLag {
		g.lag = fields[0]
	}
	gain, grid := gsmQLB[fields[1]], fields[2]

	now := residual[len(residual)-gsmSubFrame:]
	past := residual[len(residual)-gsmSubFrame-int(g.lag):][:gsmSubFrame]
	for i := range now {
		now[i] = multRound(gain, past[i])
	}

	exponent, mantissa := gsmMaximum(fields[3])
	factor, shift := gsmFAC[mantissa], uint(6-exponent)
	half := int32(1) << shift >> 1
	for i := range int32(13) {
		pulse := multRound(factor, (int32(g.bits.take(3))<<1-7)<<12)
		at := grid + 3*i
		now[at] = sat(now[at] + sat(pulse+half)>>shift)
	}
}

// gsmMaximum splits the maximum of a block into an exponent and a mantissa (section 5.2.15).
func gsmMaximum(coded int32) (exponent, mantissa int32) {
	if coded > 15 {
		exponent = coded>>3 - 1
	}
	mantissa = coded - exponent<<3
	if mantissa == 0 {
		return -4, 7
	}
	for mantissa <= 7 {
		mantissa = mantissa<<1 | 1
		exponent--
	}
	return exponent, mantissa - 8
}

// shortTerm filters the residual of a frame into its samples (section 5.3.3). It interpolates
// between the ratios of this frame and of the last frame.
func (g *gsm) shortTerm(dst []int16, ratios *[8]int32) {
	residual := g.residual[gsmMaxLag:]
	for part, from := range gsmParts {
		var r [8]int32
		for i, now := range ratios {
			old := g.ratios[i]
			switch part {
			case 0:
				now = old>>2 + now>>2 + old>>1
			case 1:
				now = old>>1 + now>>1
			case 2:
				now = old>>2 + now>>2 + now>>1
			}
			r[i] = reflection(now)
		}

		to := gsmFrame
		if part < 3 {
			to = gsmParts[part+1]
		}
		g.synthesize(dst[from:to], residual[from:to], &r)
	}
	g.ratios = *ratios
}

// reflection converts a log area ratio to a reflection coefficient (section 5.2.9.2).
func reflection(ratio int32) int32 {
	size := min(max(ratio, -ratio), 32767)
	switch {
	case size < 11059:
		size <<= 1
	case size < 20070:
		size += 11059
	default:
		size = sat(size>>2 + 26112)
	}
	if ratio < 0 {
		return -size
	}
	return size
}

// synthesize applies the lattice filter and de-emphasis.
func (g *gsm) synthesize(dst []int16, residual []int32, r *[8]int32) {
	v, out := &g.filter, g.output
	for k, s := range residual {
		s = sat(s - multRound(r[7], v[7]))
		for i := 6; i >= 0; i-- {
			s = sat(s - multRound(r[i], v[i]))
			v[i+1] = sat(v[i] + multRound(r[i], s))
		}
		v[0] = s
		out = sat(s + multRound(out, 28180))
		dst[k] = int16(sat(2*out) &^ 7)
	}
	g.output = out
}

// sat limits a sum to 16 bits.
func sat(v int32) int32 { return min(max(v, -32768), 32767) }

// multRound returns the rounded product of two 15-bit fractions. It cannot overflow, because
// codewords never lead to a factor of -32768.
func multRound(a, b int32) int32 { return (a*b + 1<<14) >> 15 }

// A bitReader reads numbers from bytes, with either the most or the least significant bit first.
type bitReader struct {
	src  []byte
	low  bool   // the least significant bit is first
	held uint32 // bits that were read, but not taken
	n    uint   // number of held bits
}

// take returns the next n bits. n is at most 8.
func (b *bitReader) take(n uint) uint32 {
	if b.n < n {
		next := uint32(b.src[0])
		b.src = b.src[1:]
		if b.low {
			b.held |= next << b.n
		} else {
			b.held = b.held<<8 | next
		}
		b.n += 8
	}

	b.n -= n
	if b.low {
		v := b.held & (1<<n - 1)
		b.held >>= n
		return v
	}
	return b.held >> b.n & (1<<n - 1)
}
