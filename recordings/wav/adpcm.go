package wav

import "encoding/binary"

// imaSteps contains the step sizes of IMA ADPCM. imaAdjust contains the change of the step index
// for each codeword without its sign (IMA Digital Audio Focus, 1992).
var (
	imaSteps = [89]int32{
		7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80,
		88, 97, 107, 118,
		130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796,
		876, 963, 1060, 1166,
		1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894,
		6484, 7132, 7845,
		8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
	}
	imaAdjust = [8]int32{-1, -1, -1, -1, 2, 4, 6, 8}
)

// An ima decodes blocks of IMA ADPCM, which are independent. A block begins with the first sample
// and the step index of each channel. Then, the channels alternate, with eight samples each.
type ima struct{ channels int }

func (d ima) block(dst []int16, src []byte) {
	for c := range d.channels {
		sample := int32(int16(binary.LittleEndian.Uint16(src[4*c:])))
		at := min(int32(src[4*c+2]), int32(len(imaSteps)-1))
		dst[c] = int16(sample)
		out := dst[d.channels+c:]

		for word := src[4*(d.channels+c):]; len(out) > 0; word = word[min(4*d.channels, len(word)):] {
			for i := range 8 {
				code := word[i/2] >> (4 * (i % 2)) & 15
				step := imaSteps[at]
				// Each of the lower bits adds a fraction of the step if it is set. The highest bit
				// is the sign.
				bit := int32(code)
				change := step>>3 + step&-(bit>>2&1) + step>>1&-(bit>>1&1) + step>>2&-(bit&1)
				sign := -(bit >> 3)
				sample = sat(sample + (change ^ sign - sign))
				at = min(max(at+imaAdjust[code&7], 0), int32(len(imaSteps)-1))
				out[i*d.channels] = int16(sample)
			}
			out = out[min(8*d.channels, len(out)):]
		}
	}
}

// Tables of MS ADPCM: pairs of coefficients, and the change of the step for each codeword
// (Microsoft, New Multimedia Data Types and Data Techniques, 1994).
var (
	msCoefficients = [7][2]int32{{256, 0}, {512, -256}, {0, 0}, {192, 64}, {240, 0}, {460, -208}, {392, -232}}
	msAdapt        = [16]int64{230, 230, 230, 230, 307, 409, 512, 614, 768, 614, 512, 409, 307, 230, 230, 230}
)

// The limits of the step in MS ADPCM. The upper limit keeps products within 32 bits.
const (
	msMinStep = 16
	msMaxStep = (1<<31 - 1) / 768
)

// An msChannel contains the state of one channel within a block of MS ADPCM.
type msChannel struct {
	coefficients [2]int32
	step         int32
	last, before int32 // the last two samples
}

// An ms decodes blocks of MS ADPCM, which are independent.
type ms struct{ channels []msChannel }

func (d ms) block(dst []int16, src []byte) {
	n := len(d.channels)
	head := func(field, c int) int32 { return int32(int16(binary.LittleEndian.Uint16(src[n+2*(field*n+c):]))) }
	for c := range d.channels {
		predictor := src[c]
		if int(predictor) >= len(msCoefficients) {
			predictor = 0
		}
		d.channels[c] = msChannel{
			coefficients: msCoefficients[predictor],
			step:         head(0, c),
			last:         head(1, c),
			before:       head(2, c),
		}
		dst[c], dst[n+c] = int16(head(2, c)), int16(head(1, c))
	}

	src = src[7*n:]
	for i := range dst[2*n:] {
		code := src[i/2] >> (4 - 4*(i%2)) & 15
		dst[2*n+i] = d.channels[i%n].next(code)
	}
}

// next decodes a 4-bit codeword.
func (c *msChannel) next(code byte) int16 {
	sample := (c.last*c.coefficients[0] + c.before*c.coefficients[1]) / 256
	sample = sat(sample + int32(int8(code<<4)>>4)*c.step)
	c.before, c.last = c.last, sample
	c.step = int32(min(max(msAdapt[code]*int64(c.step)>>8, msMinStep), msMaxStep))
	return int16(sample)
}
