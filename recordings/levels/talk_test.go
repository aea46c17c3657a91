package levels_test

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/selvage/selvage/recordings/levels"
)

// A call is a source at 8 kHz with speech and noise. It has one channel per leg.
type call [][]int16

func (c call) Rate() int     { return 8000 }
func (c call) Channels() int { return len(c) }
func (c call) Frames() int64 { return int64(len(c[0])) }
func (c call) ReadFrames(dst []int16, at int64) (n int, err error) {
	n = int(min(int64(len(dst)/len(c)), c.Frames()-at))
	for i := range n {
		for leg := range c {
			dst[i*len(c)+leg] = c[leg][at+int64(i)]
		}
	}
	if n < len(dst)/len(c) {
		err = io.EOF
	}
	return n, err
}

// A part is a section of speech in a call, in seconds.
type part struct{ from, to float64 }

// leg returns a leg with speech during parts, and with noise throughout. The levels of the
// speech and the noise are speechDB and noiseDB; a level of -inf omits the speech or the noise.
func leg(t *testing.T, seconds, speechDB, noiseDB float64, parts ...part) []int16 {
	t.Helper()
	speech := make([]int16, 36_000) // 4.5 s of speech, without the silence before and after it
	if _, err := open(t, "speech_s16_8k.wav").ReadFrames(speech, 1000); err != nil {
		t.Fatal(err)
	}
	const fileDB = -18.9 // RMS level of the file
	random := rand.New(rand.NewPCG(1, 2))
	gain := math.Pow(10, (speechDB-fileDB)/20)
	noise := 32768 * math.Pow(10, noiseDB/20)

	samples := make([]int16, int(seconds*8000))
	for i := range samples {
		at := float64(i) / 8000
		v := noise * random.NormFloat64()
		for _, p := range parts {
			if at >= p.from && at < p.to {
				v += gain * float64(speech[int((at-p.from)*8000)%len(speech)])
			}
		}
		samples[i] = int16(max(-32768, min(32767, v)))
	}
	return samples
}

func TestTalkOfACall(t *testing.T) {
	caller := []part{{2, 8}, {15, 19}, {40, 44}}
	callee := []part{{7, 14}, {20, 22}}
	none := math.Inf(-1)
	tests := []struct {
		name          string
		speech, noise float64
	}{
		{"clean", -20, none},
		{"comfort noise", -20, -62},
		{"noisy line", -20, -45},
		{"quiet talkers", -34, -60},
		{"loud", -14, -50},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			facts, _ := measure(t, call{
				leg(t, 50, tt.speech, tt.noise, caller...),
				leg(t, 50, tt.speech, tt.noise, callee...),
			})
			wantNear(t, "the talk time of the caller", &facts.Talk[0], 14, 1.4)
			wantNear(t, "the talk time of the callee", &facts.Talk[1], 9, 0.9)
			wantNear(t, "the overlap", facts.Overlap, 1, 0.3)
			wantNear(t, "the first speech", facts.FirstSpeech, 2, 0.25)
			wantNear(t, "the longest silence", &facts.LongestSilence, 18, 0.5)
			wantNear(t, "the ratio of silence", &facts.SilenceRatio, 28.0/50, 0.05)

			if got := facts.Flags.Names(); !slices.Equal(got, []string{"dead-air"}) {
				t.Errorf("flags %q, want only dead air", got)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	none := math.Inf(-1)
	talk := []part{{1, 4}, {5, 9}}
	constant := func(seconds int, v int16) []int16 { return slices.Repeat([]int16{v}, seconds*8000) }
	talker := leg(t, 9, -20, -60, talk...)
	noise := leg(t, 12, 0, -50)
	tests := []struct {
		name string
		call call
		want []string
	}{
		{"both talk", call{leg(t, 9, -20, -60, part{1, 5}), leg(t, 9, -20, -60, part{5, 8})}, nil},
		{"one leg only, as expected", call{talker}, nil},
		{"the other leg is dead", call{talker, constant(9, 0)}, []string{"one-way"}},
		{"the other leg has noise", call{talker, leg(t, 9, 0, -45)}, []string{"one-way"}},
		{"the other leg clicks", call{talker, click(9)}, []string{"one-way"}},
		{"no speech", call{noise, noise}, []string{"dead-air"}},
		{"nothing at all", call{constant(11, 0)}, []string{"silent", "dead-air"}},
		{"silence of A-law", call{constant(5, 8), constant(5, -8)}, []string{"silent"}},
		{"too loud", call{leg(t, 9, 5, none, talk...)}, []string{"clipped"}},
		{"full scale, not cut off", call{leg(t, 9, -18.9+3.2, none, talk...)}, nil},
		{"stuck at the rail", call{constant(1, 32767)}, []string{"clipped"}},
	}

	for _, tt := range tests {
		facts, _ := measure(t, tt.call)
		if got := facts.Flags.Names(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: flags %q, want %q: %+v", tt.name, got, tt.want, facts)
		}
	}
}

// click returns a leg with one click per second.
func click(seconds int) []int16 {
	l := make([]int16, seconds*8000)
	for i := 0; i < len(l); i += 8000 {
		for j := range 160 {
			l[i+j] = int16(20000 * (1 - j%2*2))
		}
	}
	return l
}

// TestSineIsNotClipped shows that a sine that just reaches full scale does not count as clipped.
func TestSineIsNotClipped(t *testing.T) {
	for _, hz := range []float64{50, 440, 997, 3000} {
		for _, rate := range []int{8000, 48000} {
			facts, _ := measure(t, sound{rate: rate, channels: 1, seconds: 1, at: sine(0, hz)})
			if facts.Flags&levels.Clipped != 0 {
				t.Errorf("of a sine of %v Hz at %d Hz, the fraction %v is clipped, want 0", hz, rate, facts.Clipped)
			}
		}
	}

	tooLoud, _ := measure(t, sound{rate: 8000, channels: 1, seconds: 1, at: sine(6, 300)})
	if c := tooLoud.Clipped; c < 0.5 || c > 0.8 { // 2/π · arccos(1/2) is 2/3
		t.Errorf("of a sine that is 6 dB too loud, the fraction %v is clipped, want two thirds", c)
	}
}
