package harness

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
)

// Speech returns the path of a recording of speech: 8 kHz, 16 bits, one channel.
func Speech(t T) string {
	t.Helper()
	return Debian(t, "asterisk-core-sounds-en-wav", "/demo-congrats.wav")[0]
}

// ReadSpeech returns the bytes of [Speech].
func ReadSpeech(t T) []byte {
	t.Helper()
	wav, err := os.ReadFile(Speech(t))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return wav
}

// WAV returns a WAV file with one channel of 16-bit samples at 8 kHz, and only the chunks fmt and
// data.
func WAV(samples []int16) []byte {
	const format, channels, rate, bytesPerSample = 1, 1, 8000, 2 // format 1 is PCM
	size := uint32(len(samples) * bytesPerSample)

	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+size)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, format)
	b = binary.LittleEndian.AppendUint16(b, channels)
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*bytesPerSample)
	b = binary.LittleEndian.AppendUint16(b, bytesPerSample)
	b = binary.LittleEndian.AppendUint16(b, 8*bytesPerSample)

	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, size)
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// Tone returns a WAV file with a square wave. Different periods result in different files.
func Tone(samples, period int) []byte {
	wave := make([]int16, samples)
	for i := range wave {
		wave[i] = 8000
		if i/period%2 == 1 {
			wave[i] = -8000
		}
	}
	return WAV(wave)
}

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
		t.Fatalf("the WAV file has samples of %d bits, want 16", bits)
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
// blocks of a tenth of a second. The first block starts from seconds after the beginning or, if
// from is negative, -from seconds before the end.
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
