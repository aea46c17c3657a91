package wav

// These are the tables of ITU-T G.722: the levels of the quantizers with 6, 4 and 2 bits, the
// changes of the step's logarithm by codeword, the inverse of the logarithm, and the filter.
var (
	g722Levels6 = [64]int32{
		-136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360,
		-8576, -7856,
		-7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728,
		24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
		4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
	}
	g722Levels4 = [16]int32{0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288,
		4240, 2584, 1200, 0}
	g722Levels2 = [4]int32{-7408, -1616, 7408, 1616}
	g722Log4    = [16]int32{-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60}
	g722Log2    = [4]int32{798, -214, 798, -214}
	g722Inverse = [32]int32{
		2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
		2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
	}
	g722Filter = [12]int32{3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11}
)

// g722Block is the number of bytes decoded at a time. They contain 20 ms of audio.
const g722Block = 160

// A g722 decodes ITU-T G.722 at 64 kbit/s. The audio has two bands. The lower band has six bits per
// codeword, and the upper band has two. Each band is predicted from its past.
type g722 struct {
	low, high g722Band
	// The sums and differences of the bands. The last g722Past values of the previous block, which
	// the filter needs, come before the values of this block.
	sums, diffs [g722Past + g722Block]int32
}

// g722Past is the number of earlier pairs of samples that the filter needs.
const g722Past = 11

// A g722Band is the predictor of a band (G.722, section 6.2.1.4).
type g722Band struct {
	log     int32    // NB, the logarithm of the step
	step    int32    // DET
	signal  int32    // S, the predicted sample
	zero    int32    // SZ, the part of S from the zeros
	outputs [2]int32 // RLT, newest first
	partial [2]int32 // PLT
	poles   [2]int32 // A
	zeros   [6]int32 // B
	inputs  [6]int32 // DLT, doubled
}

func (g *g722) reset() { *g = g722{low: g722Band{step: 32}, high: g722Band{step: 8}} }

func (g *g722) save(b []byte) []byte {
	b = g.high.save(g.low.save(b))
	return appendInts(appendInts(b, g.sums[:g722Past]), g.diffs[:g722Past])
}

func (g *g722) restore(b []byte) {
	b = g.high.restore(g.low.restore(b))
	takeInts(takeInts(b, g.sums[:g722Past]), g.diffs[:g722Past])
}

func (b *g722Band) save(to []byte) []byte {
	to = appendInts(to, []int32{b.log, b.step, b.signal, b.zero})
	for _, v := range [][]int32{b.outputs[:], b.partial[:], b.poles[:], b.zeros[:], b.inputs[:]} {
		to = appendInts(to, v)
	}
	return to
}

func (b *g722Band) restore(from []byte) []byte {
	var first [4]int32
	from = takeInts(from, first[:])
	b.log, b.step = max(first[0], 0), first[1]
	b.signal, b.zero = first[2], first[3]
	for _, v := range [][]int32{b.outputs[:], b.partial[:], b.poles[:], b.zeros[:], b.inputs[:]} {
		from = takeInts(from, v)
	}
	return from
}

// block decodes each byte into two samples.
func (g *g722) block(dst []int16, src []byte) {
	for i, b := range src {
		code := b & 63
		low := limit15(g.low.signal + g.low.step*g722Levels6[code]>>15)
		g.low.adapt(g.low.step * g722Levels4[code>>2] >> 15)
		g.low.scale(g722Log4[code>>2], 18432, 8)

		difference := g.high.step * g722Levels2[b>>6] >> 15
		high := limit15(g.high.signal + difference)
		g.high.adapt(difference)
		g.high.scale(g722Log2[b>>6], 22528, 10)

		g.sums[g722Past+i], g.diffs[g722Past+i] = low+high, low-high
	}
	g.join(dst[:2*len(src)])
}

// limit15 implements LIMIT, which limits the output of a band to 15 bits.
func limit15(v int32) int32 { return min(max(v, -16384), 16383) }

// join computes two samples from each pair of band samples. It is the receiving part of the
// quadrature mirror filter (section 4.4).
func (g *g722) join(dst []int16) {
	n := len(dst) / 2
	for i := range n {
		sums, diffs := (*[12]int32)(g.sums[i:]), (*[12]int32)(g.diffs[i:])
		var even, odd int32
		for k, c := range g722Filter {
			even += c * diffs[11-k]
			odd += c * sums[k]
		}
		dst[2*i], dst[2*i+1] = int16(sat(even>>11)), int16(sat(odd>>11))
	}
	copy(g.sums[:g722Past], g.sums[n:n+g722Past])
	copy(g.diffs[:g722Past], g.diffs[n:n+g722Past])
}

// scale adapts the step to a codeword (LOGSCL and SCALEL, and their equivalents in the upper band).
func (b *g722Band) scale(change, maxLog int32, shift int32) {
	b.log = min(max(b.log*127>>7+change, 0), maxLog)
	step := g722Inverse[b.log>>6&31]
	shift -= b.log >> 11
	if shift < 0 {
		step <<= -shift
	} else {
		step >>= shift
	}
	b.step = step << 2
}

// adapt processes the quantized difference and predicts the next sample (block 4).
func (b *g722Band) adapt(difference int32) {
	output := sat(b.signal + difference) // RECONS
	partial := sat(b.zero + difference)  // PARREC

	b.adaptPoles(partial)
	b.adaptZeros(difference)

	b.outputs[1], b.outputs[0] = b.outputs[0], output
	b.partial[1], b.partial[0] = b.partial[0], partial

	poles := sat(b.poles[0]*sat(2*b.outputs[0])>>15 + b.poles[1]*sat(2*b.outputs[1])>>15) // FILTEP
	b.signal = sat(poles + b.zero)                                                        // PREDIC
}

// adaptPoles implements UPPOL2 and UPPOL1.
func (b *g722Band) adaptPoles(partial int32) {
	first := sat(4 * b.poles[0])
	if partial < 0 == (b.partial[0] < 0) {
		first = sat(-first)
	}
	second := first >> 7
	if partial < 0 == (b.partial[1] < 0) {
		second += 128
	} else {
		second -= 128
	}
	second = min(max(second+b.poles[1]*32512>>15, -12288), 12288)

	change := int32(-192)
	if partial < 0 == (b.partial[0] < 0) {
		change = 192
	}
	limit := 15360 - second
	b.poles[0] = min(max(change+b.poles[0]*32640>>15, -limit), limit)
	b.poles[1] = second
}

// adaptZeros implements UPZERO and FILTEZ.
func (b *g722Band) adaptZeros(difference int32) {
	change := int32(128)
	if difference == 0 {
		change = 0
	}

	var sum int32
	newer := sat(2 * difference)
	for i, input := range b.inputs {
		unlike := (difference ^ input) >> 31                      // -1 if exactly one is negative, and 0 otherwise
		zero := b.zeros[i]*32640>>15 + (change ^ unlike - unlike) // cannot overflow
		sum = sat(sum + zero*newer>>15)
		b.zeros[i], b.inputs[i], newer = zero, newer, input
	}
	b.zero = sum
}
