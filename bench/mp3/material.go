package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
)

var allRates = []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}

const sounds = "/usr/share/asterisk/sounds/en_US_f_Allison"

// A material is a sound that can be generated at any sample rate.
type material struct {
	name string
	make func(rate int) (*clip, error)
}

var materials = []material{
	{"speech", speech},
	{"DTMF", func(rate int) (*clip, error) { return fromFloats(rate, dtmf(rate)), nil }},
	{"clicks", func(rate int) (*clip, error) { return fromFloats(rate, clicks(rate)), nil }},
	{"music", func(rate int) (*clip, error) { return fromFloats(rate, music(rate)), nil }},
}

// speech returns recorded telephone speech at 8 kHz. At higher rates it returns synthetic speech,
// which contains higher frequencies.
func speech(rate int) (*clip, error) {
	if rate == 8000 {
		return prompts(20)
	}
	return ffmpeg(rate, 1, "-f", "lavfi", "-i", "flite=voice=slt:text='"+
		"The quick brown fox jumps over the lazy dog. She sells sea shells by the sea shore. "+
		"Please press seven or six or five, or stay on the line to be connected with an operator. "+
		"Thank you for calling.'")
}

// prompts joins recorded prompts until they have the given length in seconds.
func prompts(seconds int) (*clip, error) {
	files, _ := filepath.Glob(sounds + "/*.wav")
	if len(files) == 0 {
		return nil, fmt.Errorf("no sounds in %s: install asterisk-core-sounds-en-wav", sounds)
	}
	const rate = 8000
	joined := &clip{rate: rate, channels: 1}
	for i := 0; len(joined.samples) < seconds*rate; i++ {
		prompt, err := ffmpeg(rate, 1, "-i", files[i*7%len(files)]) // every seventh file, for variety
		if err != nil {
			return nil, err
		}
		joined.samples = append(joined.samples, prompt.samples...)
	}
	joined.samples = joined.samples[:seconds*rate]
	return joined, nil
}

// ffmpeg returns a clip that ffmpeg decodes or synthesizes.
func ffmpeg(rate, channels int, input ...string) (*clip, error) {
	args := slices.Concat([]string{"-v", "error"}, input,
		[]string{"-f", "s16le", "-ac", fmt.Sprint(channels), "-ar", fmt.Sprint(rate), "-"})
	var stderr bytes.Buffer
	cmd := exec.Command("ffmpeg", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ffmpeg: %w: %s", err, stderr.String())
	}
	decoded := &clip{rate: rate, channels: channels, samples: make([]int16, len(out)/2)}
	_, err = binary.Decode(out, binary.LittleEndian, decoded.samples)
	return decoded, err
}

// newRandom returns a generator that is seeded with the rate, so that sounds are reproducible.
func newRandom(rate int) *rand.Rand { return rand.New(rand.NewPCG(7, uint64(rate))) }

// addTone adds a tone to x. start is the time in seconds at which the tone starts. decay is 0 for a
// steady tone.
func addTone(x []float64, rate int, start, seconds, frequency, level, decay float64) {
	first := int(start * float64(rate))
	for i := range int(seconds * float64(rate)) {
		if first+i >= len(x) {
			return
		}
		s := float64(i) / float64(rate)
		x[first+i] += level * math.Sin(2*math.Pi*frequency*s) * math.Exp(-s*decay)
	}
}

// background returns quiet noise, like on a telephone line.
func background(rate, seconds int, random *rand.Rand) []float64 {
	x := make([]float64, rate*seconds)
	for i := range x {
		x[i] = 2e-4 * random.NormFloat64()
	}
	return x
}

// dtmf returns the tones of key presses, with pauses.
func dtmf(rate int) []float64 {
	random := newRandom(rate)
	x := background(rate, 10, random)
	for t := 0.2; t < 9.7; t += 0.14 + 0.16*random.Float64() {
		addTone(x, rate, t, 0.08, []float64{697, 770, 852, 941}[random.IntN(4)], 0.3, 0)
		addTone(x, rate, t, 0.08, []float64{1209, 1336, 1477, 1633}[random.IntN(4)], 0.35, 0)
	}
	return x
}

// clicks returns sharp clicks after silence, like castanets.
func clicks(rate int) []float64 {
	random := newRandom(rate)
	x := background(rate, 10, random)
	for t := 0.2; t < 9.7; t += 0.1 + 0.3*random.Float64() {
		first := int(t * float64(rate))
		for i := range rate / 12 {
			x[first+i] += 0.3 * random.NormFloat64() * math.Exp(-float64(i)/float64(rate)/0.006)
		}
		addTone(x, rate, t, 0.08, min(2200, 0.3*float64(rate)), 0.4, 160)
	}
	return x
}

// music returns plucked strings over a chord, with some percussion.
func music(rate int) []float64 {
	random := newRandom(rate)
	x := background(rate, 15, random)
	notes := []float64{110, 138.6, 164.8, 220, 277.2, 329.6, 440, 554.4, 659.3}

	for t := 0.1; t < 12.4; t += 0.1 + 0.25*random.Float64() {
		for range 1 + random.IntN(3) {
			pluck(x, rate, t, notes[random.IntN(len(notes))], 0.1+0.15*random.Float64(), random)
		}
		if random.IntN(5) < 2 {
			first := int(t * float64(rate))
			for i := range rate / 16 {
				x[first+i] += 0.15 * random.NormFloat64() * math.Exp(-float64(i)/float64(rate)/0.012)
			}
		}
	}

	for _, f := range []float64{220, 277.2, 329.6} {
		addTone(x, rate, 0, 15, f, 0.03, 0)
	}
	return x
}

// pluck adds a plucked string, by the algorithm of Karplus and Strong.
func pluck(x []float64, rate int, start, frequency, level float64, random *rand.Rand) {
	ring := make([]float64, int(float64(rate)/frequency))
	for i := range ring {
		ring[i] = level * (2*random.Float64() - 1)
	}
	first := int(start * float64(rate))
	for i := range int(2.5 * float64(rate)) {
		k, next := i%len(ring), (i+1)%len(ring)
		x[first+i] += ring[k] * math.Exp(-float64(i)/float64(rate)/0.8)
		ring[k] = 0.498 * (ring[k] + ring[next])
	}
}
