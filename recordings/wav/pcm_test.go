package wav

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestRounding(t *testing.T) {
	integers := map[int32]int16{
		0: 0, 0x7FFF: 0, 0x8000: 1, 0x1_7FFF: 1, 0x1_8000: 2, -0x8000: 0, -0x8001: -1, -0x1_8000: -1,
		math.MaxInt32: 32767, 0x7FFF_8000: 32767, 0x7FFF_7FFF: 32767, 0x7FFE_8000: 32767, 0x7FFE_7FFF: 32766,
		math.MinInt32: -32768,
	}

	for v, want := range integers {
		le, be := binary.LittleEndian.AppendUint32(nil, uint32(v)), binary.BigEndian.AppendUint32(nil, uint32(v))
		for codec, b := range map[string][]byte{"pcm_s32le": le, "pcm_s32be": be} {
			if got := decodeOne(codec, b); got != want {
				t.Errorf("%s: %#x decodes to %d, want %d", codec, v, got, want)
			}
		}
	}

	for v, want := range map[int32]int16{0x7F: 0, 0x80: 1, -0x80: 0, -0x81: -1, 0x7FFF80: 32767, -0x800000: -32768} {
		b := binary.LittleEndian.AppendUint32(nil, uint32(v))
		for codec, b := range map[string][]byte{"pcm_s24le": b[:3], "pcm_s24be": {b[2], b[1], b[0]}} {
			if got := decodeOne(codec, b); got != want {
				t.Errorf("%s: %#x decodes to %d, want %d", codec, v, got, want)
			}
		}
	}
}

func TestFloats(t *testing.T) {
	floats := map[float64]int16{
		0: 0, 1: 32767, -1: -32768, 2: 32767, -1e30: -32768, 0.5: 16384, 0.5 / 32768: 0, 1.5 / 32768: 2,
		2.5 / 32768: 2, -0.5 / 32768: 0,
		math.Inf(1): 32767, math.Inf(-1): -32768, math.NaN(): 0, 32766.5 / 32768: 32766,
		32767.5 / 32768: 32767, math.SmallestNonzeroFloat64: 0,
	}

	for v, want := range floats {
		single, double := math.Float32bits(float32(v)), math.Float64bits(v)
		for codec, b := range map[string][]byte{
			"pcm_f32le": binary.LittleEndian.AppendUint32(nil, single),
			"pcm_f32be": binary.BigEndian.AppendUint32(nil, single),
			"pcm_f64le": binary.LittleEndian.AppendUint64(nil, double),
			"pcm_f64be": binary.BigEndian.AppendUint64(nil, double),
		} {
			if got := decodeOne(codec, b); got != want {
				t.Errorf("%s: %v decodes to %d, want %d", codec, v, got, want)
			}
		}
	}
}

func decodeOne(codec string, b []byte) int16 {
	var dst [1]int16
	directDecoder(codec)(dst[:], b)
	return dst[0]
}
