package harness

import (
	"bytes"
	"encoding/binary"
	"math"
)

// A Sound holds the samples of a WAV file.
type Sound struct {
	Rate     int // samples per second
	Channels [][]float64
}

// ReadWAV reads a WAV file of 16-bit samples.
func ReadWAV(t T, wav []byte) (s Sound) {
	t.Helper()
	format, data := bytes.Index(wav, []byte("fmt ")), bytes.Index(wav, []byte("data"))
	if format < 0 || data < 0 || data+8 > len(wav) {
		t.Fatalf("%d bytes are not a WAV file", len(wav))
	}
	s.Channels = make([][]float64, binary.LittleEndian.Uint16(wav[format+10:]))
	s.Rate = int(binary.LittleEndian.Uint32(wav[format+12:]))
	if bits := binary.LittleEndian.Uint16(wav[format+22:]); bits != 16 {
		t.Fatalf("samples of %d bits, want 16", bits)
	}

	samples := wav[data+8:]
	for i := 0; i+1 < len(samples); i += 2 {
		c := i / 2 % len(s.Channels)
		s.Channels[c] = append(s.Channels[c], float64(int16(binary.LittleEndian.Uint16(samples[i:]))))
	}
	return s
}

// Seconds returns the length of a sound.
func (s Sound) Seconds() float64 { return float64(len(s.Channels[0])) / float64(s.Rate) }

// Power returns the mean power of a frequency in a channel, computed by Goertzel's algorithm over
// blocks of a tenth of a second. Power starts at the time from, in seconds. If from is negative,
// Power starts this many seconds before the end.
func (s Sound) Power(channel, hz int, from float64) float64 {
	samples := s.Channels[channel]
	start := int(from * float64(s.Rate))
	if start < 0 {
		start += len(samples)
	}
	samples = samples[min(max(0, start), len(samples)):]

	block := s.Rate / 10
	factor := 2 * math.Cos(2*math.Pi*float64(hz)/float64(s.Rate))
	var sum float64
	var blocks int
	for ; len(samples) >= block; samples = samples[block:] {
		var s1, s2 float64
		for _, x := range samples[:block] {
			s1, s2 = x+factor*s1-s2, s1
		}
		sum += (s1*s1 + s2*s2 - factor*s1*s2) / (float64(block) * float64(block) / 4) / 2
		blocks++
	}
	return sum / float64(max(1, blocks))
}
