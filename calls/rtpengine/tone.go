package rtpengine

import (
	"encoding/binary"
	"math"
	"sync"
)

// tone returns a WAV file of the tone for recorded calls, 1400 Hz for 0.4 s. The built-in engine
// plays the same tone.
var tone = sync.OnceValue(func() string {
	const (
		rate    = 8000
		samples = rate * 4 / 10
		ramp    = rate / 50 // rises and falls for 20 ms
	)
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+2*samples)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1, rate, 0, 2 * rate, 0, 2, 16} { // PCM, mono, 8 kHz, 16 bits
		b = binary.LittleEndian.AppendUint16(b, v)
	}

	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, 2*samples)
	for i := range samples {
		loud := min(1, float64(i)/ramp, float64(samples-i)/ramp) * 8000
		v := int16(loud * math.Sin(2*math.Pi*1400*float64(i)/rate))
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return string(b)
})
