package levels_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/recordings/wav"
)

// A sound is a source computed by a formula.
type sound struct {
	rate, channels int
	seconds        float64
	at             func(channel int, t float64) float64 // -1 to 1
	piece          int                                  // maximum number of frames per read; 0 means no limit
}

func (s sound) Rate() int     { return s.rate }
func (s sound) Channels() int { return s.channels }
func (s sound) Frames() int64 { return int64(s.seconds * float64(s.rate)) }

func (s sound) ReadFrames(dst []int16, at int64) (n int, err error) {
	want := int64(len(dst) / s.channels)
	if s.piece > 0 {
		want = min(want, int64(s.piece))
	}
	if left := s.Frames() - at; left < want {
		want, err = left, io.EOF
	}
	for i := range int(want) {
		seconds := float64(at+int64(i)) / float64(s.rate)
		for c := range s.channels {
			v := s.at(c, seconds) * 32767
			dst[i*s.channels+c] = int16(math.Round(max(-32768, min(32767, v))))
		}
	}
	return int(want), err
}

func sine(db, hz float64) func(int, float64) float64 {
	amount := math.Pow(10, db/20)
	return func(_ int, t float64) float64 { return amount * math.Sin(2*math.Pi*hz*t) }
}

func measure(t *testing.T, s levels.Source) (levels.Facts, levels.Outline) {
	t.Helper()
	f, o, err := levels.Measure(s)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

// wantNear checks that a level differs from want by at most the tolerance, in dB. If want is NaN, the
// level must be unknown.
func wantNear(t *testing.T, name string, level *float64, want, tolerance float64) {
	t.Helper()
	switch {
	case level == nil && !math.IsNaN(want):
		t.Errorf("%s is unknown, want %v", name, want)
	case level != nil && math.IsNaN(want):
		t.Errorf("%s is %v, want it unknown", name, *level)
	case level != nil && math.Abs(*level-want) > tolerance:
		t.Errorf("%s is %v, want %v within %v dB", name, *level, want, tolerance)
	}
}

// TestCorpusMatchesFFmpeg compares the levels with those measured by ffmpeg 5.1.9: astats for peak
// and RMS, and ebur128 for loudness.
func TestCorpusMatchesFFmpeg(t *testing.T) {
	none := math.NaN()
	tests := []struct {
		file            string
		peak, rms, lufs float64
	}{
		{"speech_s16_8k.wav", -3.229905, -18.871053, -19.0},
		{"speech_s16_16k.wav", -3.085779, -18.871376, -19.2},
		{"speech_s16_48k.wav", -4.206703, -18.964262, -19.3},
		{"speech_stereo_8k.wav", -3.229905, -21.103094, -18.2},
		{"clipped_dc.wav", -0.000265, -0.000265, -26.1},
		{"pcm_44100.wav", -10.458812, -17.105632, -18.1},
		{"rate_odd_6000.wav", -10.46058, -17.10563, -17.9},
		{"silence.wav", none, none, none},
		{"one_sample.wav", -66.23, -66.23, none},
	}

	for _, tt := range tests {
		facts, _ := measure(t, open(t, tt.file))
		wantNear(t, "the peak of "+tt.file, facts.Peak, tt.peak, 0.006)
		wantNear(t, "the RMS of "+tt.file, facts.RMS, tt.rms, 0.006)
		wantNear(t, "the loudness of "+tt.file, facts.Loudness, tt.lufs, 0.1)
	}
}

func open(t testing.TB, file string) levels.Source {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}

	facts, err := wav.Parse(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	s, err := wav.Open(f, facts, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLoudnessAtEveryRate shows that a sine of 997 Hz at full scale in one channel has -3.01 LUFS
// at every rate (BS.1770-4, annex 1).
func TestLoudnessAtEveryRate(t *testing.T) {
	for _, rate := range []int{4000, 6000, 8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000, 192000} {
		facts, _ := measure(t, sound{rate: rate, channels: 1, seconds: 2, at: sine(0, 997)})
		tolerance := 0.1
		if rate < 6000 { // the filter is distorted near the end of the band
			tolerance = 0.2
		}
		wantNear(t, fmt.Sprintf("the loudness at %d Hz", rate), facts.Loudness, -3.01, tolerance)
		wantNear(t, fmt.Sprintf("the RMS at %d Hz", rate), facts.RMS, -3.01, 0.02)
	}

	// The extreme rates need only a plausible loudness.
	for _, rate := range []int{1000, 768_000} {
		facts, _ := measure(t, sound{rate: rate, channels: 1, seconds: 1, at: sine(-6, 200)})
		wantNear(t, fmt.Sprintf("the loudness at %d Hz", rate), facts.Loudness, -15, 15)
	}
}

// TestLoudnessGates runs the first five test cases of EBU Tech 3341 for integrated loudness: stereo
// sines, and gates.
func TestLoudnessGates(t *testing.T) {
	type levelAt func(seconds float64) float64
	constant := func(level float64) levelAt {
		return func(float64) float64 { return level }
	}
	between := func(outside, inside, from, to float64) levelAt {
		return func(seconds float64) float64 {
			if seconds >= from && seconds < to {
				return inside
			}
			return outside
		}
	}
	threeSteps := func(seconds float64) float64 {
		if seconds < 10 || seconds >= 90 {
			return -72
		}
		return between(-36, -23, 20, 80)(seconds)
	}

	tests := []struct {
		name    string
		seconds float64
		level   levelAt
		want    float64
	}{
		{"1", 20, constant(-23), -23},
		{"2", 20, constant(-33), -33},
		{"3", 80, between(-36, -23, 10, 70), -23},
		{"4", 100, threeSteps, -23},
		{"5", 60.1, between(-26, -20, 20, 40.1), -23},
	}

	for _, tt := range tests {
		tone := func(c int, seconds float64) float64 { return sine(tt.level(seconds), 1000)(c, seconds) }
		facts, _ := measure(t, sound{rate: 8000, channels: 2, seconds: tt.seconds, at: tone})
		wantNear(t, "the loudness of case "+tt.name, facts.Loudness, tt.want, 0.1)
	}
}

// TestPieces shows that the size of reads does not affect the result.
func TestPieces(t *testing.T) {
	s := sound{rate: 11025, channels: 3, seconds: 1.37, at: func(c int, t float64) float64 {
		return math.Sin(400*t*float64(c+1)) * math.Abs(math.Sin(3*t))
	}}
	wantFacts, wantOutline := measure(t, s)
	for _, piece := range []int{1, 7, 220, 221, 552, 4095} {
		s.piece = piece
		facts, outline := measure(t, s)
		if diff := cmp.Diff(wantFacts, facts); diff != "" {
			t.Errorf("in pieces of %d frames, the facts differ (-want +got):\n%s", piece, diff)
		}
		if !reflect.DeepEqual(outline, wantOutline) {
			t.Errorf("in pieces of %d frames, the outline differs", piece)
		}
	}
}

// TestLongAudio shows that ten hours of a repeated cycle have the same levels as one cycle.
func TestLongAudio(t *testing.T) {
	short, _ := measure(t, cycle(10))
	long, outline := measure(t, cycle(36000))
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"RMS", *long.RMS, *short.RMS},
		{"loudness", *long.Loudness, *short.Loudness},
		{"DC offset", long.DCOffset, short.DCOffset},
		{"silence ratio", long.SilenceRatio, short.SilenceRatio},
		{"talk time", long.Talk[0], 3600 * short.Talk[0]},
	} {
		if tt.got != tt.want {
			t.Errorf("the %s of ten hours is %v, want %v", tt.name, tt.got, tt.want)
		}
	}

	// The outline has a lower resolution than usual, because it would otherwise be too large.
	if got := outline.Length(); got != 36000*levels.PixelsPerSecond/4 {
		t.Errorf("the outline has %d pixels, want a quarter of the usual number", got)
	}
}

// A cycle is a source that repeats ten seconds of audio, two of which are loud. To save time, its
// rate is 1 kHz.
type cycle float64

func (c cycle) Rate() int     { return 1000 }
func (c cycle) Channels() int { return 1 }
func (c cycle) Frames() int64 { return int64(c * 1000) }
func (c cycle) ReadFrames(dst []int16, at int64) (n int, err error) {
	n = int(min(int64(len(dst)), c.Frames()-at))
	for i := range n {
		dst[i] = 5
		if in := (at + int64(i)) % 10_000; in >= 4000 && in < 6000 {
			dst[i] += int16([4]int{0, 9000, 0, -9000}[in%4])
		}
	}
	if n < len(dst) {
		err = io.EOF
	}
	return n, err
}

func TestFaultOfTheSource(t *testing.T) {
	broken := errors.New("broken")
	s := faulty{sound{rate: 8000, channels: 1, seconds: 9, at: sine(0, 300)}, broken}
	if _, _, err := levels.Measure(s); !errors.Is(err, broken) {
		t.Errorf("Measure: %v, want the source's error", err)
	}
}

func TestMeasureWithoutAudio(t *testing.T) {
	facts, outline := measure(t, sound{rate: 8000, channels: 2})
	if n := outline.Length(); n != 0 {
		t.Errorf("the outline has %d pixels, want none", n)
	}
	if n := len(facts.Talk); n != 2 {
		t.Errorf("the facts have talk times of %d legs, want 2", n)
	}
}

type faulty struct {
	sound
	err error
}

func (f faulty) ReadFrames(dst []int16, at int64) (int, error) {
	if at > 8000 {
		return 0, f.err
	}
	return f.sound.ReadFrames(dst, at)
}

// BenchmarkMeasure measures ten minutes of speech.
func BenchmarkMeasure(b *testing.B) {
	var speech []int16
	s := open(b, "speech_s16_8k.wav")
	file := make([]int16, s.Frames())
	if _, err := s.ReadFrames(file, 0); err != nil && err != io.EOF {
		b.Fatal(err)
	}
	for len(speech) < 4_800_000 {
		speech = append(speech, file...)
	}
	for b.Loop() {
		if _, _, err := levels.Measure(line(speech)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(speech)), "ns/sample")
}

// A line is audio in memory, with one channel at 8 kHz.
type line []int16

func (l line) Rate() int     { return 8000 }
func (l line) Channels() int { return 1 }
func (l line) Frames() int64 { return int64(len(l)) }
func (l line) ReadFrames(dst []int16, at int64) (n int, err error) {
	if n = copy(dst, l[at:]); n < len(dst) {
		err = io.EOF
	}
	return n, err
}
