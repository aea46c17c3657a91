package opus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// encodings are arguments of ffmpeg that encode a file in each mode of Opus.
var encodings = map[string]struct{ file, args string }{
	"SILK, narrow":          {"speech_s16_48k.wav", "-ac 1 -b:a 8k -application voip -cutoff 4000"},
	"SILK, wide":            {"speech_s16_48k.wav", "-ac 1 -b:a 14k -application voip -cutoff 8000"},
	"hybrid":                {"speech_s16_48k.wav", "-ac 1 -b:a 28k -application voip"},
	"hybrid, 60 ms":         {"speech_s16_48k.wav", "-ac 1 -b:a 14k -application voip -frame_duration 60"},
	"CELT":                  {"speech_s16_48k.wav", "-ac 1 -b:a 96k -application audio"},
	"CELT, 2.5 ms":          {"speech_s16_48k.wav", "-ac 1 -b:a 64k -application lowdelay -frame_duration 2.5"},
	"two channels, SILK":    {"speech_stereo_8k.wav", "-b:a 16k -application voip -cutoff 8000"},
	"two channels, CELT":    {"speech_stereo_8k.wav", "-b:a 128k -application audio"},
	"two channels in music": {"", "-b:a 96k -application audio"},
}

// music is the input of the encodings without a file: chords, a sweep and noise, ten seconds long.
const music = "aevalsrc=0.3*sin(2*PI*440*t)+0.2*sin(2*PI*(1000+500*t)*t)+0.1*random(0)|" +
	"0.3*sin(2*PI*660*t)+0.1*random(1):d=10:s=48000"

// encode returns an Ogg file in one of the encodings, at least nine seconds long.
func encode(t testing.TB, name string) []byte {
	t.Helper()
	e := encodings[name]
	if e.file == "" {
		return ffmpeg(t, nil, "-f lavfi -i "+music+" -c:a libopus "+e.args+" -f ogg")
	}
	return ffmpeg(t, corpus(t, e.file), "-stream_loop 2 -i %in -ar 48000 -c:a libopus "+e.args+" -f ogg")
}

// TestJudge compares the samples with those of ffmpeg, which uses libopus.
func TestJudge(t *testing.T) {
	for name := range encodings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := encode(t, name)
			got := samplesOf(t, open(t, file))
			want := ffmpeg(t, file, "-c:a libopus -i %in -f s16le")
			if len(want) != 2*len(got) {
				t.Fatalf("%d samples, want %d", len(got), len(want)/2)
			}

			var signal, noise float64
			for i, v := range got {
				w := float64(int16(binary.LittleEndian.Uint16(want[2*i:])))
				difference := float64(v) - w
				signal += w * w
				noise += difference * difference
			}
			if db := 10 * math.Log10(signal/(noise+1e-9)); db < 40 {
				t.Errorf("the signal is %.1f dB above the difference from libopus, want at least 40", db)
			}
		})
	}
}

// TestAnyRangeEqualsTheWhole reads random ranges, with and without an index.
func TestAnyRangeEqualsTheWhole(t *testing.T) {
	for _, name := range []string{"hybrid", "CELT", "two channels, SILK", "two channels in music"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := encode(t, name)
			s := open(t, file)
			whole := samplesOf(t, s)
			savedIndex := func() ([]byte, error) { return s.Index(), nil }
			indexed, err := Open(bytes.NewReader(file), int64(len(file)), savedIndex)
			if err != nil {
				t.Fatal(err)
			}

			random := rand.New(rand.NewPCG(1, 2))
			for range 15 {
				first := random.Int64N(s.Frames())
				n := 1 + random.IntN(3*maxFrames)
				if random.IntN(3) == 0 {
					lastBorder := s.Frames() / segmentFrames * segmentFrames
					first = max(0, lastBorder-int64(n/2))
				}
				wantFrames(t, s, whole, first, n)
				wantFrames(t, indexed, whole, first, n)
			}
		})
	}
}

// wantFrames checks that n frames of a source, from the given first frame, equal those in whole.
func wantFrames(t *testing.T, s *Source, whole []int16, first int64, n int) {
	t.Helper()
	got := make([]int16, n*s.Channels())
	want := whole[first*int64(s.Channels()):]
	want = want[:min(len(want), len(got))]

	n, err := s.ReadFrames(got, first)
	if len(want) == len(got) && err != nil {
		t.Errorf("reading frames at %d: %v, want no error before the end", first, err)
	}
	if len(want) < len(got) && err == nil {
		t.Errorf("reading frames at %d, beyond the end: no error, want an error", first)
	}
	if !slices.Equal(got[:n*s.Channels()], want) {
		t.Errorf("reading %d frames at %d differs from reading the whole file", n, first)
	}
}

// TestPages shows that the layout of a file does not change its audio. It tests pages of any size,
// packets that span pages, a stream that began before the recording, and junk between pages.
func TestPages(t *testing.T) {
	packets := packetsOf(t, encode(t, "two channels, CELT"))
	want := samplesOf(t, open(t, mux(packets, 0, 50)))
	for name, file := range map[string][]byte{
		"a segment a page":    mux(packets, 0, 1),
		"two segments a page": mux(packets, 0, 2),
		"the largest pages":   mux(packets, 0, 255),
		"a stream that began": mux(packets, 123_456_789, 50),
		"junk":                junked(mux(packets, 0, 50)),
	} {
		if got := samplesOf(t, open(t, file)); !slices.Equal(got, want) {
			t.Errorf("%s: %d samples differ from the %d of another layout", name, len(got), len(want))
		}
	}
}

// junked returns the file with extra bytes, which belong to no page, before each page but the
// first.
func junked(file []byte) []byte {
	parts := bytes.SplitAfter(file, []byte("OggS\x00"))
	var b []byte
	for i, part := range parts {
		beforePage, ok := bytes.CutSuffix(part, []byte("OggS\x00"))
		b = append(b, beforePage...)
		if i > 0 && ok {
			b = append(b, "OggS junk Ogg"...)
		}
		if ok {
			b = append(b, "OggS\x00"...)
		}
	}
	return b
}

func isLoud(sample int16) bool { return sample != 0 }

// TestLostPages shows that lost pages become silence, and that later audio keeps its position.
func TestLostPages(t *testing.T) {
	packets := packetsOf(t, encode(t, "two channels in music"))
	file := mux(packets, 0, 50)
	whole := open(t, file)
	want := samplesOf(t, whole)

	first := whole.index.marks[1].offset // about four seconds into the audio
	next := bytes.Index(file[first+1:], []byte("OggS\x00"))
	s := open(t, slices.Concat(file[:first], file[first+1+int64(next):]))
	got := samplesOf(t, s)
	if len(got) != len(want) {
		t.Fatalf("without a page there are %d samples, want %d", len(got), len(want))
	}

	lost := 2 * (whole.index.marks[1].start - whole.index.position(whole.head, 0))
	if !slices.Equal(got[:lost], want[:lost]) {
		t.Error("a lost page changes earlier audio")
	}
	if slices.ContainsFunc(got[lost:lost+1920], isLoud) {
		t.Error("a lost page is loud, want silence")
	}
	if after := 2 * 8 * Rate; !slices.Equal(got[after:], want[after:]) {
		t.Errorf("a lost page changes the segments after the one that contains it")
	}
}

// TestBrokenPackets shows that packets that cannot be decoded keep their length.
func TestBrokenPackets(t *testing.T) {
	packets := packetsOf(t, corpus(t, "speech.ogg"))
	random := rand.New(rand.NewPCG(3, 4))
	for _, p := range packets[2:] {
		for i := range p[1:] {
			p[i+1] = byte(random.Uint32())
		}
	}

	want := open(t, corpus(t, "speech.ogg")).Frames()
	samples := samplesOf(t, open(t, mux(packets, 0, 50)))
	if got := int64(len(samples)); got < want || got > want+maxFrames {
		t.Errorf("%d frames, want %d to %d", got, want, want+maxFrames)
	}
}

func TestGain(t *testing.T) {
	file := corpus(t, "speech.ogg")
	want := samplesOf(t, open(t, file))
	halved := bytes.Clone(file)
	binary.LittleEndian.PutUint16(halved[28+16:], uint16(0x10000-1541)) // -6.02 dB
	for i, v := range samplesOf(t, open(t, halved)) {
		if w := float64(want[i]) / 2; math.Abs(float64(v)-w) > 1+math.Abs(w)/1000 {
			t.Fatalf("sample %d is %d, want half of %d", i, v, want[i])
		}
	}
}

// TestDamagedIndex shows that an index is ignored if it is damaged, or belongs to another file.
func TestDamagedIndex(t *testing.T) {
	file := encode(t, "CELT")
	s := open(t, file)
	want := samplesOf(t, s)
	index := s.Index()
	for i := range index {
		damaged := bytes.Clone(index)
		damaged[i] ^= 0x10
		if _, ok := parseIndex(damaged, int64(len(file))); ok {
			t.Fatalf("an index with byte %d changed is used", i)
		}
	}
	if _, ok := parseIndex(index, int64(len(file))+1); ok {
		t.Error("the index of another file is used")
	}

	half := func() ([]byte, error) { return index[:50], nil }
	damaged, err := Open(bytes.NewReader(file), int64(len(file)), half)
	if err != nil {
		t.Fatalf("Open with a damaged index: %v", err)
	}
	if !slices.Equal(samplesOf(t, damaged), want) {
		t.Error("with a damaged index, the samples are different, want the same")
	}

	broken := errors.New("the disk is broken")
	unreadable := func() ([]byte, error) { return nil, broken }
	_, err = Open(bytes.NewReader(file), int64(len(file)), unreadable)
	if !errors.Is(err, broken) {
		t.Errorf("Open = %v, want %v", err, broken)
	}
}

// TestIndexIsSmall shows that the index of 54 hours of audio is small and works.
func TestIndexIsSmall(t *testing.T) {
	short := packetsOf(t, encode(t, "SILK, narrow"))
	packets := slices.Clone(short[:2])
	for range 50 * 3600 * 9 { // packets of 120 ms: 54 hours
		packets = append(packets, []byte{short[2][0] | 3, 6})
	}
	file := mux(packets, 0, 255)
	s := open(t, file)
	if n := len(s.Index()); n > 600_000 {
		t.Errorf("the index has %d bytes, want at most 600000", n)
	}
	if s.index.step != 2 {
		t.Errorf("the index has a mark every %d segments, want every 2", s.index.step)
	}

	buf := make([]int16, 100)
	if n, err := s.ReadFrames(buf, s.Frames()-100); n != 100 || err != nil {
		t.Errorf("ReadFrames of the last 100 frames = %d, %v, want 100", n, err)
	}
}

// TestSparse shows that a file is refused if reading from some frame would read most of it.
func TestSparse(t *testing.T) {
	packets := packetsOf(t, corpus(t, "speech.ogg"))
	m := &muxer{segments: 50}
	for i, p := range packets {
		if i == len(packets)/2 { // more segments than there are marks
			m.granule += 8 * maxMarks * segmentFrames
		}
		m.packet(p)
	}
	m.flush(false)

	for name, file := range map[string][]byte{"continuous": mux(packets, 0, 50), "gap": m.file.Bytes()} {
		last := bytes.LastIndex(file, []byte("OggS\x00"))
		for where, at := range map[string]int{"before the last page": last, "at the end": len(file)} {
			sparse := slices.Concat(file[:at], make([]byte, 2*maxSpan), file[at:])
			if _, err := Scan(bytes.NewReader(sparse), int64(len(sparse))); !errors.Is(err, ErrSparse) {
				t.Errorf("%s, sparse %s: Scan = %v, want %v", name, where, err, ErrSparse)
			}
		}
	}
}

// TestShortPages shows that the work for a segment is limited even if its pages are too short.
// Each page contains a whole packet, although the position of the page claims a single frame. The
// rest of the segment is silent.
func TestShortPages(t *testing.T) {
	packets := packetsOf(t, encode(t, "CELT"))
	packets = append(packets, packets[2:]...)
	m := &muxer{segments: 255}
	for i, p := range packets {
		m.packet(p)
		m.granule = int64(i - 1)
		m.flush(false)
	}

	s := open(t, m.file.Bytes())
	got := samplesOf(t, s)
	played := maxDecoded/(Rate/50) - int(s.head.skip)
	if !slices.ContainsFunc(got[:played], isLoud) {
		t.Errorf("the first %d samples are silent, want sound", played)
	}
	if slices.ContainsFunc(got[played:], isLoud) {
		t.Errorf("there is sound after the first %d of %d samples, want silence", played, len(got))
	}
}

func TestChannels(t *testing.T) {
	file := corpus(t, "speech.ogg")
	for name, change := range map[string]func(h []byte){
		"a different mapping": func(h []byte) { h[18] = 255 },
		"three channels":      func(h []byte) { h[9] = 3 },
	} {
		b := bytes.Clone(file)
		change(b[28:])
		if _, err := Open(bytes.NewReader(b), int64(len(b)), nil); !errors.Is(err, ErrChannels) {
			t.Errorf("%s: Open = %v, want %v", name, err, ErrChannels)
		}
		facts, err := Scan(bytes.NewReader(b), int64(len(b)))
		if err != nil || facts.Frames == 0 {
			t.Errorf("%s: Scan = %+v, %v, want the number of frames", name, facts, err)
		}
	}
}
