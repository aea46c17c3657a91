package mp3

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// encodings maps kinds of files to arguments of lame.
var encodings = map[string]string{
	"8 kHz, one channel":       "-b 16 -m m --resample 8",
	"8 kHz, legs apart":        "-b 32 -m s --resample 8",
	"8 kHz, lowest rate":       "-b 8 -m m --resample 8",
	"11 kHz":                   "-b 32 -m j --resample 11.025",
	"12 kHz":                   "-b 32 -m j --resample 12",
	"16 kHz, variable":         "-V 4 -m j --resample 16",
	"22 kHz":                   "-b 64 -m j --resample 22.05",
	"24 kHz, lowest rate":      "-b 8 -m m --resample 24",
	"32 kHz":                   "-b 96 -m j --resample 32",
	"44 kHz, variable":         "-V 2 -m j --resample 44.1",
	"44 kHz, middle and side":  "-b 128 -m f --resample 44.1",
	"44 kHz, checksums":        "-b 128 -p -m j --resample 44.1",
	"48 kHz, highest rate":     "-b 320 -m s",
	"48 kHz, no tags":          "-b 96 -m j -t",
	"48 kHz, no bit reservoir": "-b 128 --nores -m j",
	"48 kHz, ID3":              "-b 96 --tt title --add-id3v2",
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

// TestIntensity sets the bit for intensity stereo in files that lack it, because no available
// encoder writes it. ffmpeg then decodes scale factors as positions.
func TestIntensity(t *testing.T) {
	wave := makeWave(t, 8)
	for _, name := range []string{"44 kHz, variable", "48 kHz, no tags"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := lame(t, wave, encodings[name])
			changed := 0
			frames := open(t, file).scan.walk()
			for frames.next() {
				file[frames.frameStart+3] |= 0x50
				changed++
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
	got := samplesOf(t, open(t, file))
	if missing := len(got) - len(reference)/2; missing < 0 || missing > 2*1152 {
		t.Fatalf("%d samples, want %d", len(got), len(reference)/2)
	}
	var signal, noise float64
	for i, v := range got[:len(reference)/2] {
		want := float64(int16(binary.LittleEndian.Uint16(reference[2*i:])))
		difference := float64(v) - want
		signal += want * want
		noise += difference * difference
	}
	if db := 10 * math.Log10(signal/(noise+1e-9)); db < 60 {
		t.Errorf("the signal is %.1f dB above the difference, want at least 60", db)
	}
}

// TestAnyRangeEqualsTheWhole reads random ranges, with and without an index.
func TestAnyRangeEqualsTheWhole(t *testing.T) {
	wave := makeWave(t, 8)
	for _, args := range []string{"-b 16 -m m --resample 8", "-V 2 -m j", "-b 32 -m j --resample 24"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			file := lame(t, wave, args)
			junk := make([]byte, 300)
			file = slices.Concat(bytes.Repeat(file, 4), junk, bytes.Repeat(file, 2))
			f := open(t, file)
			whole := samplesOf(t, f)
			savedIndex := func() ([]byte, error) { return f.Index(), nil }
			indexed, err := Open(bytes.NewReader(file), int64(len(file)), savedIndex)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(f.index.marks); n < 2 {
				t.Fatalf("%d marks, want at least 2", n)
			}

			random := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				first := random.Int64N(f.Frames())
				n := 1 + random.IntN(5000)
				if random.IntN(3) == 0 { // across the border of two segments
					first = segmentFrames*f.frameSamples() - f.skip - int64(n/2)
				}
				wantFrames(t, f, whole, first, n)
				wantFrames(t, indexed, whole, first, n)
			}
		})
	}
}

// wantFrames checks that n frames of a file, from the given first frame, equal those in whole.
func wantFrames(t *testing.T, f *File, whole []int16, first int64, n int) {
	t.Helper()
	got := make([]int16, n*f.Channels())
	want := whole[first*int64(f.Channels()):]
	want = want[:min(len(want), len(got))]

	n, err := f.ReadFrames(got, first)
	if len(want) == len(got) && err != nil {
		t.Errorf("reading frames at %d: %v, want no error before the end", first, err)
	}
	if len(want) < len(got) && err == nil {
		t.Errorf("reading frames at %d, beyond the end: no error, want an error", first)
	}
	if !slices.Equal(got[:n*f.Channels()], want) {
		t.Errorf("reading %d frames at %d differs from reading the whole file", n, first)
	}
}

// TestSegmentsEqualOneDecoder shows that the segments have the same samples as the whole file
// decoded by one decoder.
func TestSegmentsEqualOneDecoder(t *testing.T) {
	wave := makeWave(t, 30)
	for _, args := range []string{"-b 8 -m m --resample 24", "-b 128 -m j --resample 44.1"} {
		f := open(t, lame(t, wave, args))
		got := samplesOf(t, f)
		if n := len(f.index.marks); n < 2 {
			t.Errorf("%s: %d marks, want at least 2", args, n)
		}

		var want []int16
		d := newDecoder()
		w := f.scan.walk()
		for w.next() {
			frame := f.scan.read(w.frameStart, w.frame.length)
			want = d.frame(w.frame, frame, f.Channels(), want)
		}
		want = want[int(f.skip)*f.Channels():]
		if !slices.Equal(got, want[:len(got)]) {
			t.Errorf("%s: the samples of the segments differ from those of one decoder", args)
		}
	}
}

// TestCutFiles shows that the audio before the cut is unchanged if a file is cut at any position.
func TestCutFiles(t *testing.T) {
	file := corpus(t, "speech_vbr_notag.mp3")
	whole := samplesOf(t, open(t, file))
	for cut := len(file) - 1; cut > 2000; cut -= 97 {
		got := samplesOf(t, open(t, file[:cut]))
		if len(got) >= len(whole) {
			t.Fatalf("a file that is cut at %d has %d samples, want fewer than %d", cut, len(got), len(whole))
		}
		if !slices.Equal(got, whole[:len(got)]) {
			t.Fatalf("the samples of a file that is cut at %d are not the first %d of the whole", cut, len(got))
		}
	}
}

// TestLostFrames shows that lost bytes change only a few frames, and that later audio is unchanged.
func TestLostFrames(t *testing.T) {
	file := corpus(t, "speech_vbr_notag.mp3")
	f := open(t, file)
	whole := samplesOf(t, f)
	w := f.scan.walk()
	for range 30 {
		w.next()
	}

	damaged := slices.Concat(file[:w.frameStart], make([]byte, 100), file[w.frameStart+int64(w.frame.length):])
	got := samplesOf(t, open(t, damaged))
	frame := f.scan.first.samples()
	if want := len(whole) - frame; len(got) != want {
		t.Fatalf("%d samples, want %d", len(got), want)
	}
	if !slices.Equal(got[:29*frame], whole[:29*frame]) {
		t.Error("the loss in frame 30 changes earlier frames")
	}
	if !slices.Equal(got[60*frame:], whole[61*frame:]) {
		t.Error("the loss in frame 30 changes the frames from 61 on")
	}
}

// TestDamagedIndex shows that an index is ignored if it is damaged, or belongs to another file.
func TestDamagedIndex(t *testing.T) {
	file := corpus(t, "speech_cbr32.mp3")
	f := open(t, file)
	want := samplesOf(t, f)
	index := f.Index()
	for i := range index {
		damaged := bytes.Clone(index)
		damaged[i] ^= 0x10
		if parseIndex(damaged, int64(len(file))) != nil {
			t.Fatalf("an index with byte %d changed is accepted", i)
		}
	}

	twice := slices.Concat(file, file)
	wrongIndex := func() ([]byte, error) { return index, nil }
	other, err := Open(bytes.NewReader(twice), int64(len(twice)), wrongIndex)
	if err != nil {
		t.Fatal(err)
	}
	if other.Frames() <= f.Frames() {
		t.Errorf("%d frames with the index of another file, want more than its %d", other.Frames(), f.Frames())
	}
	if half := len(want) / 2; !slices.Equal(samplesOf(t, other)[:half], want[:half]) {
		t.Error("the samples are different with the index of another file, want the same")
	}
}

// TestLongIndex shows that the index of a long file stays small.
func TestLongIndex(t *testing.T) {
	x := &index{step: 1}
	for n := int64(0); n < 1<<20; n++ {
		if x.frameOf(int64(len(x.marks))) <= max(0, n*segmentFrames-preroll) {
			x.add(&walker{frameStart: n * 1000})
		}
	}
	if n := len(x.marks); n >= maxMarks {
		t.Errorf("%d marks, want fewer than %d", n, maxMarks)
	}
	if x.step < 8 {
		t.Errorf("a mark every %d segments, want one every 8 or more", x.step)
	}
	for i, mark := range x.marks {
		if got, want := mark>>1, int64(i)*x.step*1000; got != want {
			t.Fatalf("mark %d is at position %d, want %d", i, got, want)
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

// TestUnreadable shows that a failed read is not mistaken for a sparse file, however long the rest is.
func TestUnreadable(t *testing.T) {
	file := bytes.Repeat(corpus(t, "speech_vbr_notag.mp3"), 3600)
	broken := errors.New("the disk is broken")
	readerAt := readerAtFunc(func(b []byte, at int64) (int, error) {
		if at+int64(len(b)) > int64(len(file)) {
			return 0, broken
		}
		return copy(b, file[at:]), nil
	})
	if _, err := Open(readerAt, int64(len(file))+2*maxSpan, nil); !errors.Is(err, broken) {
		t.Errorf("Open = %v, want the error of the disk", err)
	}
}

// A readerAtFunc is a function that implements io.ReaderAt.
type readerAtFunc func(b []byte, at int64) (int, error)

func (f readerAtFunc) ReadAt(b []byte, at int64) (int, error) { return f(b, at) }

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
			file[n] ^= byte(change)
			file[n+1] ^= byte(change >> 8)
		}
		bound.Check(t, len(file), func() {
			s, err := Open(bytes.NewReader(file), int64(len(file)), nil)
			if err != nil {
				return
			}
			samplesOf(t, s)
		})
	})
}
