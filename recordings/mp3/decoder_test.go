package mp3

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// encodings maps kinds of files to arguments of lame.
var encodings = map[string]string{
	"8 kHz, one channel":           "-b 16 -m m --resample 8",
	"8 kHz, legs apart":            "-b 32 -m s --resample 8",
	"8 kHz, lowest rate":           "-b 8 -m m --resample 8",
	"11 kHz":                       "-b 32 -m j --resample 11.025",
	"12 kHz":                       "-b 32 -m j --resample 12",
	"16 kHz, variable":             "-V 4 -m j --resample 16",
	"22 kHz":                       "-b 64 -m j --resample 22.05",
	"24 kHz, lowest rate":          "-b 8 -m m --resample 24",
	"32 kHz":                       "-b 96 -m j --resample 32",
	"44 kHz, variable":             "-V 2 -m j --resample 44.1",
	"44 kHz, middle and side":      "-b 128 -m f --resample 44.1",
	"44 kHz, checksums":            "-b 128 -p -m j --resample 44.1",
	"48 kHz, highest rate":         "-b 320 -m s",
	"48 kHz, no tags":              "-b 96 -m j -t",
	"48 kHz, a frame has all bits": "-b 128 --nores -m j",
	"48 kHz, ID3":                  "-b 96 --tt title --add-id3v2",
}

// TestJudgeOfDecoder compares decoded samples with those of ffmpeg.
func TestJudgeOfDecoder(t *testing.T) {
	wave := makeWave(t, 8)
	for name, args := range encodings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := lame(t, wave, args)
			judge(t, file, ffmpeg(t, file, "-i %in -f s16le"))
		})
	}
	for _, name := range []string{"speech_cbr32.mp3", "speech_vbr_notag.mp3"} {
		t.Run(name, func(t *testing.T) {
			file := corpus(t, name)
			judge(t, file, ffmpeg(t, file, "-i %in -f s16le"))
		})
	}

	// At 24 kHz, one band ends at line 332 in lame and in libmad, but at line 330 in ffmpeg.
	file := lame(t, wave, "-b 80 -m j --resample 24")
	judge(t, file, program(t, "sox", file, "-t mp3 %in -t s16 -"))
}

// TestIntensity sets the bit for intensity stereo in files that lack it, because no encoder at hand
// writes it. ffmpeg then decodes scale factors as positions.
func TestIntensity(t *testing.T) {
	wave := makeWave(t, 8)
	for _, name := range []string{"44 kHz, variable", "48 kHz, no tags"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := lame(t, wave, encodings[name])
			f := open(t, file)
			changed := 0
			for w := f.scan.walk(); w.next(); changed++ {
				file[w.at+3] |= 0x50
			}
			if changed < 200 {
				t.Fatalf("%d frames were changed, want at least 200", changed)
			}
			judge(t, file, ffmpeg(t, file, "-i %in -f s16le"))
		})
	}
}

// judge compares the decoded samples of a file with a reference, which may lack a frame at the end.
// Correctly rounded 16-bit samples differ from it by about -100 dB.
func judge(t *testing.T, file, reference []byte) {
	t.Helper()
	got := all(t, open(t, file))
	if missing := len(got) - len(reference)/2; missing < 0 || missing > 2*1152 {
		t.Fatalf("%d samples, want %d", len(got), len(reference)/2)
	}
	var signal, fault float64
	for i, v := range got[:len(reference)/2] {
		r := float64(int16(binary.LittleEndian.Uint16(reference[2*i:])))
		signal, fault = signal+r*r, fault+(float64(v)-r)*(float64(v)-r)
	}
	if db := 10 * math.Log10(signal/(fault+1e-9)); db < 60 {
		t.Errorf("the samples differ by %.1f dB, want at least 60", db)
	}
}

// TestAnyRangeEqualsTheWhole reads random ranges, with and without an index.
func TestAnyRangeEqualsTheWhole(t *testing.T) {
	wave := makeWave(t, 8)
	for _, args := range []string{"-b 16 -m m --resample 8", "-V 2 -m j", "-b 32 -m j --resample 24"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			file := lame(t, wave, args)
			file = slices.Concat(bytes.Repeat(file, 4), make([]byte, 300), bytes.Repeat(file, 2)) // with junk in it
			s := open(t, file)
			whole, index := all(t, s), s.Index()
			indexed, err := Open(bytes.NewReader(file), int64(len(file)), func() ([]byte, error) { return index, nil })
			if err != nil {
				t.Fatal(err)
			}
			if len(s.index.marks) < 2 {
				t.Fatalf("%d marks, want several", len(s.index.marks))
			}

			random := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				at, n := random.Int64N(s.Frames()), 1+random.IntN(5000)
				if random.IntN(3) == 0 { // across the border of two segments
					at = segment*int64(s.scan.first.samples()) - s.skip - int64(n/2)
				}
				for _, from := range []*File{s, indexed} {
					wantFrames(t, from, whole, at, n)
				}
			}
		})
	}
}

// wantFrames checks that n frames of a file, beginning with frame at, equal those in whole.
func wantFrames(t *testing.T, f *File, whole []int16, at int64, n int) {
	t.Helper()
	got := make([]int16, n*f.Channels())
	n, err := f.ReadFrames(got, at)
	want := whole[at*int64(f.Channels()):]
	want = want[:min(len(want), len(got))]
	if !slices.Equal(got[:n*f.Channels()], want) || (err != nil) != (len(want) < len(got)) {
		t.Errorf("reading %d frames at %d (error %v) differs from reading the whole file", n, at, err)
	}
}

// TestSegmentsEqualOneDecoder shows that the segments have the same samples as the whole file
// decoded by one decoder.
func TestSegmentsEqualOneDecoder(t *testing.T) {
	wave := makeWave(t, 30)
	for _, args := range []string{"-b 8 -m m --resample 24", "-b 128 -m j --resample 44.1"} {
		f := open(t, lame(t, wave, args))
		got := all(t, f)
		d, w := newDecoder(), f.scan.walk()
		var want []int16
		for w.next() {
			want = d.frame(w.frame, f.scan.at(w.at, w.frame.length), f.Channels(), want)
		}
		if len(f.index.marks) < 2 || !slices.Equal(got, want[int(f.skip)*f.Channels():][:len(got)]) {
			t.Errorf("%s: %d segments differ from one decoder's audio, or are fewer than 2", args, len(f.index.marks))
		}
	}
}

// TestCutFiles shows that the audio before the cut is unchanged if a file is cut at any position.
func TestCutFiles(t *testing.T) {
	file := corpus(t, "speech_vbr_notag.mp3")
	whole := all(t, open(t, file))
	for cut := len(file) - 1; cut > 2000; cut -= 97 {
		got := all(t, open(t, file[:cut]))
		if len(got) >= len(whole) || !slices.Equal(got, whole[:len(got)]) {
			t.Fatalf("cut at %d, %d samples are not the beginning of the whole", cut, len(got))
		}
	}
}

// TestLostFrames shows that lost bytes change only a few frames, and that later audio is unchanged.
func TestLostFrames(t *testing.T) {
	file := corpus(t, "speech_vbr_notag.mp3")
	f := open(t, file)
	whole := all(t, f)
	w := f.scan.walk()
	for range 30 {
		w.next()
	}

	damaged := slices.Concat(file[:w.at], make([]byte, 100), file[w.at+int64(w.frame.length):])
	got := all(t, open(t, damaged))
	spf := f.scan.first.samples()
	if len(got) != len(whole)-spf {
		t.Fatalf("%d samples, want %d", len(got), len(whole)-spf)
	}
	if !slices.Equal(got[:29*spf], whole[:29*spf]) || !slices.Equal(got[60*spf:], whole[61*spf:]) {
		t.Error("lost bytes change samples far from them")
	}
}

// TestDamagedIndex shows that an index is ignored if it is damaged, or belongs to another file.
func TestDamagedIndex(t *testing.T) {
	file := corpus(t, "speech_cbr32.mp3")
	s := open(t, file)
	want, index := all(t, s), s.Index()
	for i := range index {
		damaged := bytes.Clone(index)
		damaged[i] ^= 0x10
		if parseIndex(damaged, int64(len(file))) != nil {
			t.Fatalf("an index with byte %d changed is accepted", i)
		}
	}

	other := slices.Concat(file, file)
	f, err := Open(bytes.NewReader(other), int64(len(other)), func() ([]byte, error) { return index, nil })
	if err != nil || f.Frames() <= s.Frames() || !slices.Equal(all(t, f)[:len(want)/2], want[:len(want)/2]) {
		t.Errorf("Open with the index of another file = %v", err)
	}
}

// TestLongIndex shows that the index of a long file stays small.
func TestLongIndex(t *testing.T) {
	x := &index{step: 1}
	for n := int64(0); n < 1<<20; n++ {
		if x.first(int64(len(x.marks))) <= max(0, n*segment-preroll) {
			x.add(0, &walker{at: n * 1000})
		}
	}
	if len(x.marks) >= maxMarks || x.step < 8 {
		t.Fatalf("%d marks, one for every %d segments, want fewer than maxMarks, for 8 or more", len(x.marks), x.step)
	}
	for i, mark := range x.marks {
		if mark>>1 != int64(i)*x.step*1000 {
			t.Fatalf("mark %d is at frame %d, which is not a multiple of the step", i, mark>>1)
		}
	}
}

// TestSparse shows that a file is refused if reading from some frame would skip many bytes.
func TestSparse(t *testing.T) {
	frames := corpus(t, "speech_vbr_notag.mp3")
	file := slices.Concat(bytes.Repeat(frames, 3600), make([]byte, maxSpan+1), frames)
	if _, err := Open(bytes.NewReader(file), int64(len(file)), nil); err != ErrSparse {
		t.Errorf("Open = %v, want ErrSparse", err)
	}
}

// FuzzDecoder decodes damaged files. Decoding must not take more time and memory than the size of
// the file justifies.
func FuzzDecoder(f *testing.F) {
	for _, name := range []string{"speech_cbr32.mp3", "speech_vbr_notag.mp3", "false_sync.mp3"} {
		f.Add(corpus(f, name), uint16(0), uint16(0))
	}
	for _, source := range []*clip{makeClip(8000, 2, 4000), makeClip(44100, 2, 9000), makeClip(22050, 1, 5000)} {
		f.Add(encode(f, source), uint16(500), uint16(0x55aa))
	}

	bound := fuzzcost.Bound{CPU: 200 * time.Millisecond, CPUPerByte: 20 * time.Microsecond, Heap: 2 << 20, PerByte: 256}
	f.Fuzz(func(t *testing.T, file []byte, at, change uint16) {
		file = bytes.Clone(file)
		if n := int(at); n+1 < len(file) {
			file[n], file[n+1] = file[n]^byte(change), file[n+1]^byte(change>>8)
		}
		bound.Check(t, len(file), func() {
			s, err := Open(bytes.NewReader(file), int64(len(file)), nil)
			if err != nil {
				return
			}
			all(t, s)
		})
	})
}

// corpus returns a file of the corpus.
func corpus(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// open opens a file in memory.
func open(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// all returns all samples of a file.
func all(t testing.TB, f *File) []int16 {
	t.Helper()
	samples := make([]int16, f.Frames()*int64(f.Channels()))
	if n, err := f.ReadFrames(samples, 0); err != nil || int64(n) != f.Frames() {
		t.Fatalf("ReadFrames = %d, %v, want %d frames", n, err, f.Frames())
	}
	return samples
}

// makeWave returns a WAV file of the given length, at 48 kHz with two channels.
func makeWave(t testing.TB, seconds int) []byte {
	t.Helper()
	var raw bytes.Buffer
	_ = binary.Write(&raw, binary.LittleEndian, makeClip(48000, 2, 48000*seconds).samples)
	return ffmpeg(t, raw.Bytes(), "-f s16le -ar 48000 -ac 2 -i %in -f wav")
}

// ffmpeg returns the output of ffmpeg. In its arguments, %in stands for a file that contains in.
func ffmpeg(t testing.TB, in []byte, args string) []byte {
	t.Helper()
	return program(t, "ffmpeg", in, "-v error "+args+" -")
}

// lame encodes a WAV file as MP3.
func lame(t testing.TB, wave []byte, args string) []byte {
	t.Helper()
	return program(t, "lame", wave, "--quiet "+args+" %in -")
}

// program returns the output of a program. In its arguments, %in stands for a file that contains
// in.
func program(t testing.TB, name string, in []byte, args string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(file, in, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(tool(t, name), strings.Fields(strings.ReplaceAll(args, "%in", file))...)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, args, err, complaints.Bytes())
	}
	return out
}
