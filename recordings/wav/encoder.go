package wav

import "fmt"

// An Encoder encodes audio that arrives in pieces, such as the payloads of RTP packets. It keeps
// its state between pieces, and is not safe for concurrent use.
type Encoder struct {
	perByte int
	encode  func(dst []byte, src []int16)
	state   *g722Encoder // nil for G.711, which has no state
}

// NewEncoder returns an encoder for "mulaw", "alaw" or "g722". For any other codec, it returns
// [ErrCodec].
func NewEncoder(codec string) (*Encoder, error) {
	switch codec {
	case "mulaw":
		return &Encoder{perByte: 1, encode: lookupEncoder(muLawCodes())}, nil
	case "alaw":
		return &Encoder{perByte: 1, encode: lookupEncoder(aLawCodes())}, nil
	case "g722":
		e := &g722Encoder{low: g722Band{step: 32}, high: g722Band{step: 8}}
		return &Encoder{perByte: 2, encode: e.encode, state: e}, nil
	}
	return nil, fmt.Errorf("%w: encoding %s", ErrCodec, codec)
}

// Encode fills dst with the codewords of the samples in src. A byte encodes one sample with G.711,
// and two samples with G.722.
func (e *Encoder) Encode(dst []byte, src []int16) {
	for len(dst) > 0 {
		n := min(len(dst), g722Block)
		e.encode(dst[:n], src[:n*e.perByte])
		dst, src = dst[n:], src[n*e.perByte:]
	}
}

// Follow copies the state of other, an encoder with the same codec. A decoder that has decoded the
// output of other can then continue with the output of e.
func (e *Encoder) Follow(other *Encoder) {
	if e.state != nil {
		*e.state = *other.state
	}
}

// A g722Encoder encodes ITU-T G.722 at 64 kbit/s. Like the decoder, it predicts both bands. It
// predicts from the values that the decoder will have.
type g722Encoder struct {
	low, high g722Band
	// The first and second samples of all pairs. The last g722Past pairs of the previous block,
	// which the filter needs, come before the pairs of this block.
	firsts, seconds [g722Past + g722Block]int32
}

// g722HighDecision is the decision level of the upper band's quantizer.
const g722HighDecision = 564

// These are the tables of the lower band's quantizer: the decision levels, and the codewords for
// negative and positive differences.
var (
	g722Decisions = [30]int32{0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858,
		940, 1023, 1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919}
	g722LowNegative = [31]byte{0, 63, 62, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
		15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4}
	g722LowPositive = [31]byte{0, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44,
		43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32}
)

// encode encodes each pair of samples as a byte. src has at most g722Block pairs.
func (e *g722Encoder) encode(dst []byte, src []int16) {
	for i := range dst {
		e.firsts[g722Past+i], e.seconds[g722Past+i] = int32(src[2*i]), int32(src[2*i+1])
	}
	for i := range dst {
		low, high := e.split(i)
		lowCode, highCode := e.quantizeLow(low), e.quantizeHigh(high)
		dst[i] = highCode<<6 | lowCode

		e.low.adapt(e.low.step * g722Levels4[lowCode>>2] >> 15)
		e.low.scale(g722Log4[lowCode>>2], 18432, 8)
		e.high.adapt(e.high.step * g722Levels2[highCode] >> 15)
		e.high.scale(g722Log2[highCode], 22528, 10)
	}
	copy(e.firsts[:g722Past], e.firsts[len(dst):len(dst)+g722Past])
	copy(e.seconds[:g722Past], e.seconds[len(dst):len(dst)+g722Past])
}

// split returns the samples of the two bands for pair i. It is the transmitting part of the
// quadrature mirror filter (section 3.1).
func (e *g722Encoder) split(i int) (low, high int32) {
	firsts, seconds := (*[12]int32)(e.firsts[i:]), (*[12]int32)(e.seconds[i:])
	var even, odd int32
	for k, c := range g722Filter {
		odd += c * firsts[k]
		even += c * seconds[11-k]
	}
	return limit15((even + odd) >> 14), limit15((even - odd) >> 14)
}

// quantizeLow returns the six-bit codeword for a sample of the lower band (QUANTL).
func (e *g722Encoder) quantizeLow(sample int32) byte {
	difference := sat(sample - e.low.signal)
	size := difference
	if difference < 0 {
		size = -difference - 1
	}

	// Find the first decision level above size.
	from, to := 1, len(g722Decisions)
	for from < to {
		if middle := (from + to) / 2; size < g722Decisions[middle]*e.low.step>>12 {
			to = middle
		} else {
			from = middle + 1
		}
	}
	if difference < 0 {
		return g722LowNegative[from]
	}
	return g722LowPositive[from]
}

// quantizeHigh returns the two-bit codeword for a sample of the upper band (QUANTH).
func (e *g722Encoder) quantizeHigh(sample int32) byte {
	difference := sat(sample - e.high.signal)
	level := g722HighDecision * e.high.step >> 12
	if difference < 0 {
		if -difference-1 >= level {
			return 0
		}
		return 1
	}
	if difference >= level {
		return 2
	}
	return 3
}

// lookupEncoder returns an encode function that looks up codewords by the upper 14 bits of a sample.
func lookupEncoder(codes *[1 << 14]byte) func(dst []byte, src []int16) {
	return func(dst []byte, src []int16) {
		for i, s := range src {
			dst[i] = codes[uint16(s)>>2]
		}
	}
}
