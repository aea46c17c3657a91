package wav

import (
	"encoding/binary"
	"math"
)

// directDecoder returns a decoder for a codec whose samples are coded independently, or nil for
// other codecs.
//
// Samples with more than 16 bits are rounded to the nearest value, and clipped. Halves are rounded
// up for integers, and to even for floats. No dither is added, so that the same file always decodes
// to the same bytes.
func directDecoder(codec string) func(dst []int16, src []byte) {
	switch codec {
	case "mulaw":
		return companded(muLaw)
	case "alaw":
		return companded(aLaw)
	case "pcm_u8":
		return func(dst []int16, src []byte) {
			for i, b := range src[:len(dst)] {
				dst[i] = int16(b^0x80) << 8
			}
		}

	case "pcm_s16le":
		return littleEndian
	case "pcm_s16be":
		return func(dst []int16, src []byte) {
			for i := range dst {
				dst[i] = int16(binary.BigEndian.Uint16(src[2*i:]))
			}
		}

	case "pcm_s24le":
		return func(dst []int16, src []byte) {
			for i := range dst {
				b := src[3*i : 3*i+3]
				dst[i] = round32(int32(b[0])<<8 | int32(b[1])<<16 | int32(b[2])<<24)
			}
		}
	case "pcm_s24be":
		return func(dst []int16, src []byte) {
			for i := range dst {
				b := src[3*i : 3*i+3]
				dst[i] = round32(int32(b[2])<<8 | int32(b[1])<<16 | int32(b[0])<<24)
			}
		}

	case "pcm_s32le":
		return func(dst []int16, src []byte) {
			for i := range dst {
				dst[i] = round32(int32(binary.LittleEndian.Uint32(src[4*i:])))
			}
		}
	case "pcm_s32be":
		return func(dst []int16, src []byte) {
			for i := range dst {
				dst[i] = round32(int32(binary.BigEndian.Uint32(src[4*i:])))
			}
		}
	}
	return floatDecoder(codec)
}

// littleEndian decodes 16-bit samples, four at a time where possible. This is the most common codec.
func littleEndian(dst []int16, src []byte) {
	for len(dst) >= 4 && len(src) >= 8 {
		four := binary.LittleEndian.Uint64(src)
		dst[0], dst[1] = int16(four), int16(four>>16)
		dst[2], dst[3] = int16(four>>32), int16(four>>48)
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] = int16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// floatDecoder is like directDecoder, for codecs whose samples are floats between -1 and 1.
func floatDecoder(codec string) func(dst []int16, src []byte) {
	switch codec {
	case "pcm_f32le":
		return func(dst []int16, src []byte) {
			for i := range dst {
				dst[i] = roundFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))))
			}
		}
	case "pcm_f32be":
		return func(dst []int16, src []byte) {
			for i := range dst {
				dst[i] = roundFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(src[4*i:]))))
			}
		}

	case "pcm_f64le":
		return func(dst []int16, src []byte) {
			for i := range dst {
				dst[i] = roundFloat(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
			}
		}
	case "pcm_f64be":
		return func(dst []int16, src []byte) {
			for i := range dst {
				dst[i] = roundFloat(math.Float64frombits(binary.BigEndian.Uint64(src[8*i:])))
			}
		}
	}
	return nil
}

// round32 rounds a 32-bit sample to 16 bits.
func round32(v int32) int16 { return int16((max(v, v+1<<15) >> 16)) }

// roundFloat converts a float to a sample. NaN becomes silence.
func roundFloat(v float64) int16 {
	v *= 1 << 15
	switch {
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	case v != v:
		return 0
	}
	return int16(math.RoundToEven(v))
}
