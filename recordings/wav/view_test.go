package wav

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// open opens the audio of a file in the corpus. If the audio cannot be converted, open returns nil.
func open(t testing.TB, name string, index []byte) *Samples {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(corpus, name))
	if err != nil {
		t.Fatal(err)
	}

	facts, err := Parse(bytes.NewReader(file), int64(len(file)))
	if errors.Is(err, ErrNotWAV) {
		facts, err = ParseRaw(filepath.Ext(name), bytes.NewReader(file), int64(len(file)))
	}
	if err != nil {
		return nil
	}

	s, err := Open(bytes.NewReader(file), facts, having(index))
	if err != nil {
		return nil
	}
	return s
}

// readView reads a view from start to end.
func readView(t testing.TB, s Source) []byte {
	t.Helper()
	v := NewView(s)
	whole, err := io.ReadAll(v)
	if err != nil || int64(len(whole)) != v.Size() {
		t.Fatalf("a view returns %d bytes, %v, want %d", len(whole), err, v.Size())
	}
	return whole
}

// TestRangesOfViews shows that a range of a view has the same bytes as the whole view, whatever was
// read before.
func TestRangesOfViews(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name := range expectations(t) {
		s := open(t, name, nil)
		if s == nil {
			continue
		}
		whole := readView(t, s)
		v := NewView(s)

		for range 200 {
			from := random.Int64N(v.Size())
			want := whole[from : from+random.Int64N(v.Size()-from)+1]
			got := make([]byte, len(want))
			if _, err := v.Seek(from, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(v, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %d bytes from %d differ from the whole, %v", name, len(want), from, err)
			}
		}
	}
}

func TestViewOfAFileThatWasCut(t *testing.T) {
	for codec, audio := range audioFiles(t) {
		s, err := Open(bytes.NewReader(audio.file[:len(audio.file)/2]), audio.facts, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := NewView(s)
		if got, err := io.ReadAll(v); !errors.Is(err, io.ErrUnexpectedEOF) || int64(len(got)) >= v.Size() {
			t.Errorf("%s: reading the view of half a file = %d bytes, %v, want %v", codec, len(got), err,
				io.ErrUnexpectedEOF)
		}
	}
}

// A silence is a silent source of any length.
type silence struct {
	channels int
	frames   int64
}

func (s silence) Rate() int     { return 48_000 }
func (s silence) Channels() int { return s.channels }
func (s silence) Frames() int64 { return s.frames }
func (s silence) ReadFrames(dst []int16, _ int64) (int, error) {
	clear(dst)
	return len(dst) / s.channels, nil
}

func TestHeaderOfViews(t *testing.T) {
	const most = (math.MaxUint32 - 36) / 4 // maximum number of frames of two channels that a RIFF header allows
	for _, tt := range []struct {
		channels int
		frames   int64
		header   int64
		magic    string
	}{
		{1, 0, 44, "RIFF"}, {1, 1, 44, "RIFF"}, {2, most, 44, "RIFF"}, {2, most + 1, 80, "RF64"},
		{2, 48_000 * 3600 * 100, 80, "RF64"}, {32, 10, 44, "RIFF"},
	} {
		v := NewView(silence{tt.channels, tt.frames})
		if want := tt.header + tt.frames*2*int64(tt.channels); v.Size() != want {
			t.Errorf("Size of %d frames = %d, want %d", tt.frames, v.Size(), want)
		}

		head := make([]byte, tt.header)
		if _, err := io.ReadFull(v, head); err != nil || string(head[:4]) != tt.magic {
			t.Errorf("%d frames: header %.4q, %v, want %s", tt.frames, head, err, tt.magic)
		}

		got, err := Parse(bytes.NewReader(head), v.Size())
		if err != nil || got.Frames != tt.frames || got.Channels != tt.channels || got.SampleRate != 48_000 ||
			len(got.Repairs) > 0 {
			t.Errorf("the header of %d frames is read as %+v, %v, want the same facts", tt.frames, got, err)
		}
		if tt.frames > 0 && got.Plain() != (tt.magic == "RIFF") {
			t.Errorf("Plain of %s = %v, want it only of RIFF", tt.magic, got.Plain())
		}
	}
}

func TestSeekInViews(t *testing.T) {
	v := NewView(silence{1, 100})
	for _, tt := range []struct {
		offset int64
		whence int
		want   int64 // -1 means an error
	}{
		{10, io.SeekStart, 10}, {5, io.SeekCurrent, 15}, {-20, io.SeekCurrent, -1}, {-4, io.SeekEnd, 240},
		{7, io.SeekEnd, 251},
		{-1, io.SeekStart, -1}, {0, 9, -1}, {0, io.SeekCurrent, 251},
	} {
		if got, err := v.Seek(tt.offset, tt.whence); (err == nil) != (tt.want >= 0) || err == nil && got != tt.want {
			t.Errorf("Seek(%d, %d) = %d, %v, want %d", tt.offset, tt.whence, got, err, tt.want)
		}
	}

	if n, err := v.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("Read after the end = %d, %v, want EOF", n, err)
	}
}

// TestPlain shows that only files that every player can read are plain.
func TestPlain(t *testing.T) {
	plain := map[string]bool{
		"bext_before_fmt.wav": true, "canonical_44.wav": true, "chunk_odd_padded.wav": true,
		"clipped_dc.wav": true, "fmt18.wav": true,
		"four_channels.wav": true, "header_only_44.wav": true, "junk_align_4096.wav": true,
		"list_before_data.wav": true, "one_mp3_frame.wav": true, "one_sample.wav": true,
		"pcm_11025.wav": true, "pcm_44100.wav": true, "rate_odd_6000.wav": true, "silence.wav": true,
		"speech_s16_16k.wav": true,
		"speech_s16_48k.wav": true, "speech_s16_8k.wav": true, "speech_stereo_8k.wav": true,
		"trailing_chunks.wav": true,
	}
	for name := range expectations(t) {
		if s := open(t, name, nil); s != nil && s.facts.Plain() != plain[name] {
			t.Errorf("Plain of %s = %v, want %v", name, s.facts.Plain(), plain[name])
		}
	}
}
