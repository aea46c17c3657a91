package harness

import (
	"encoding/binary"
	"os"
)

// LaML returns the path of one of the project's resources in the LaML recordings API.
func (p *Project) LaML(path string) string {
	return "/api/laml/2010-04-01/Accounts/" + p.ID + path
}

// Upload stores a recording and returns its Sid.
func (p *Project) Upload(t T, wav []byte) string {
	t.Helper()
	a := p.Post(t, p.LaML("/Recordings"), p.Basic(), Body("audio/wav", wav)).Want(t, 201)
	return member(t, a.Object(t), "sid")
}

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

// WAV returns a canonical WAV file of 16-bit samples at 8 kHz, one channel.
func WAV(samples []int16) []byte {
	const rate, block = 8000, 2
	size := uint32(len(samples) * block)

	b := append([]byte{}, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, 36+size)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1} { // PCM, one channel
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*block)
	for _, v := range []uint16{block, 8 * block} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}

	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, size)
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// Tone returns a WAV file of a square wave with this many samples. Files with different periods are
// different.
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
