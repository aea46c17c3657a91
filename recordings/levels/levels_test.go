package levels_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

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
	for n = range int(want) {
		for c := range s.channels {
			v := s.at(c, float64(at+int64(n))/float64(s.rate))
			dst[n*s.channels+c] = int16(math.Round(max(-32768, min(32767, v*32767))))
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

// near reports whether a level differs from want by at most within dB. If want is NaN, the level
// must be unknown.
func near(got *float64, want, within float64) bool {
	if got == nil || math.IsNaN(want) {
		return got == nil && math.IsNaN(want)
	}
	return math.Abs(*got-want) <= within
}

func show(level *float64) string {
	if level == nil {
		return "none"
	}
	return fmt.Sprint(*level)
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
		f, _ := measure(t, open(t, tt.file))
		if !near(f.Peak, tt.peak, 0.006) || !near(f.RMS, tt.rms, 0.006) || !near(f.Loudness, tt.lufs, 0.1) {
			t.Errorf("%s: peak %s, RMS %s, loudness %s, want %v, %v, %v", tt.file, show(f.Peak), show(f.RMS),
				show(f.Loudness), tt.peak, tt.rms, tt.lufs)
		}
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
		f, _ := measure(t, sound{rate: rate, channels: 1, seconds: 2, at: sine(0, 997)})
		within := 0.1
		if rate < 6000 { // the filter is distorted near the end of the band
			within = 0.2
		}
		if !near(f.Loudness, -3.01, within) || !near(f.RMS, -3.01, 0.02) {
			t.Errorf("%d Hz: loudness %s, RMS %s, want -3.01", rate, show(f.Loudness), show(f.RMS))
		}
	}

	for _, rate := range []int{1000, 768_000} { // the extreme rates need only a plausible value
		if f, _ := measure(
			t, sound{rate: rate, channels: 1, seconds: 1, at: sine(-6, 200)},
		); f.Loudness == nil || *f.Loudness > 0 || *f.Loudness < -30 {
			t.Errorf("%d Hz: a sine of -6 dB has the implausible loudness %s", rate, show(f.Loudness))
		}
	}
}

// TestLoudnessGates runs the test cases of EBU Tech 3341 for integrated loudness: stereo sines, and
// gates.
func TestLoudnessGates(t *testing.T) {
	steps := func(level func(t float64) float64) func(int, float64) float64 {
		return func(c int, t float64) float64 { return sine(level(t), 1000)(c, t) }
	}

	between := func(out, in, from, to float64) func(float64) float64 {
		return func(t float64) float64 {
			if t >= from && t < to {
				return in
			}
			return out
		}
	}

	tests := []struct {
		name    string
		seconds float64
		level   func(t float64) float64
		want    float64
	}{
		{"1", 20, func(float64) float64 { return -23 }, -23},
		{"2", 20, func(float64) float64 { return -33 }, -33},
		{"3", 80, between(-36, -23, 10, 70), -23},
		{"4", 100, func(t float64) float64 {
			if t < 10 || t >= 90 {
				return -72
			}
			return between(-36, -23, 20, 80)(t)
		}, -23},
		{"5", 60.1, between(-26, -20, 20, 40.1), -23},
	}

	for _, tt := range tests {
		f, _ := measure(t, sound{rate: 8000, channels: 2, seconds: tt.seconds, at: steps(tt.level)})
		if !near(f.Loudness, tt.want, 0.1) {
			t.Errorf("case %s: loudness %s, want %v", tt.name, show(f.Loudness), tt.want)
		}
	}
}

// TestPieces shows that the size of reads does not affect the result.
func TestPieces(t *testing.T) {
	s := sound{rate: 11025, channels: 3, seconds: 1.37, at: func(c int, t float64) float64 {
		return math.Sin(400*t*float64(c+1)) * math.Abs(math.Sin(3*t))
	}}
	want, outline := measure(t, s)
	for _, s.piece = range []int{1, 7, 220, 221, 552, 4095} {
		if got, o := measure(t, s); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(o, outline) {
			t.Errorf("reading in pieces of %d frames returned %+v, want %+v", s.piece, got, want)
		}
	}
}

// TestLongAudio shows that ten hours of a repeated cycle have the same levels as one cycle.
func TestLongAudio(t *testing.T) {
	short, long := cycle(10), cycle(36000)
	a, _ := measure(t, short)
	b, o := measure(t, long)
	if *a.RMS != *b.RMS || *a.Loudness != *b.Loudness || a.DCOffset != b.DCOffset ||
		a.SilenceRatio != b.SilenceRatio || b.Talk[0] != 3600*a.Talk[0] {
		t.Errorf("ten seconds have the levels %+v, and ten hours of the same sound have %+v", a, b)
	}
	// The outline has a lower resolution than usual, because it would otherwise be too large.
	if got := o.Length(); got != 36000*levels.PixelsPerSecond/4 {
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
	if _, _, err := levels.Measure(
		faulty{sound{rate: 8000, channels: 1, seconds: 9, at: sine(0, 300)}, broken},
	); !errors.Is(err, broken) {
		t.Errorf("Measure: %v, want the source's error", err)
	}
	if f, o, err := levels.Measure(sound{rate: 8000, channels: 2}); err != nil || o.Length() != 0 ||
		len(f.Talk) != 2 {
		t.Errorf("Measure of no audio = %+v, %v, want an empty outline and two legs", f, err)
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

func TestFactsAsJSON(t *testing.T) {
	f, _ := measure(t, open(t, "silence.wav"))
	b, err := json.Marshal(f)
	want := `{"peak_db":null,"rms_db":null,"lufs":null,"clipped":0,"dc_offset":0,"talk_s":[0],"overlap_s":null,` +
		`"silence_ratio":1,"longest_silence_s":3,"first_speech_s":null,"flags":["silent"]}`
	if err != nil || string(b) != want {
		t.Errorf("facts of silence = %s, %v\nwant %s", b, err, want)
	}
	var back levels.Facts
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, f) {
		t.Errorf("after a round trip: %+v, %v, want %+v", back, err, f)
	}
	if err := json.Unmarshal([]byte(`{"flags":["x"]}`), &back); err == nil {
		t.Error("an unknown flag is accepted")
	}
}

func TestFactsAsText(t *testing.T) {
	for _, file := range []string{"silence.wav", "speech_stereo_8k.wav", "one_sample.wav", "clipped_dc.wav",
		"four_channels.wav"} {
		f, _ := measure(t, open(t, file))
		text := f.Text()
		if back, err := levels.ParseText(text); err != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("%s: ParseText(%q) = %+v, %v, want %+v", file, text, back, err, f)
		}
		for i := range text {
			_, _ = levels.ParseText(text[:i]) // must not panic
		}
	}

	for _, bad := range []string{"", "{}", "2 0 1 1 1 1 1 1 1 1 1", "1 256 1 1 1 1 1 1 1 1 1",
		"1 0 1 1 1 1 1 1 1 1", "1 0 1 1 1 1 1 x 1 1 1 1"} {
		if f, err := levels.ParseText(bad); err == nil {
			t.Errorf("ParseText(%q) = %+v, want an error", bad, f)
		}
	}
}

// BenchmarkMeasure measures ten minutes of speech.
func BenchmarkMeasure(b *testing.B) {
	var speech []int16
	for s := open(b, "speech_s16_8k.wav"); len(speech) < 4_800_000; {
		all := make([]int16, s.Frames())
		if _, err := s.ReadFrames(all, 0); err != nil && err != io.EOF {
			b.Fatal(err)
		}
		speech = append(speech, all...)
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
