package wav

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// readView reads the view of a source from start to end.
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
			first := random.Int64N(v.Size())
			length := 1 + random.Int64N(v.Size()-first)
			if _, err := v.Seek(first, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, length)
			if _, err := io.ReadFull(v, got); err != nil {
				t.Fatalf("%s: reading %d bytes from %d: %v", name, length, first, err)
			}
			if !bytes.Equal(got, whole[first:first+length]) {
				t.Fatalf("%s: %d bytes from %d differ from the whole", name, length, first)
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
		got, err := io.ReadAll(v)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: reading the view of half a file: %v, want %v", codec, err, io.ErrUnexpectedEOF)
		}
		if int64(len(got)) >= v.Size() {
			t.Errorf("%s: the view of half a file has %d bytes, want fewer than %d", codec, len(got), v.Size())
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
	// maxFrames is the maximum number of frames of two channels that a RIFF header allows.
	const maxFrames = (math.MaxUint32 - 36) / 4
	tests := []struct {
		name     string
		channels int
		frames   int64
		header   int64
		magic    string
		plain    bool
	}{
		{"no frames", 1, 0, 44, "RIFF", false},
		{"one frame", 1, 1, 44, "RIFF", true},
		{"the largest RIFF", 2, maxFrames, 44, "RIFF", true},
		{"the smallest RF64", 2, maxFrames + 1, 80, "RF64", false},
		{"a hundred hours", 2, 48_000 * 3600 * 100, 80, "RF64", false},
		{"32 channels", 32, 10, 44, "RIFF", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := NewView(silence{tt.channels, tt.frames})
			if want := tt.header + tt.frames*2*int64(tt.channels); v.Size() != want {
				t.Errorf("Size = %d, want %d", v.Size(), want)
			}

			head := make([]byte, tt.header)
			if _, err := io.ReadFull(v, head); err != nil {
				t.Fatal(err)
			}
			if magic := string(head[:4]); magic != tt.magic {
				t.Errorf("the header begins with %q, want %s", magic, tt.magic)
			}

			facts, err := Parse(bytes.NewReader(head), v.Size())
			if err != nil {
				t.Fatal(err)
			}
			if facts.Frames != tt.frames {
				t.Errorf("the header claims %d frames, want %d", facts.Frames, tt.frames)
			}
			if facts.Channels != tt.channels || facts.SampleRate != 48_000 {
				t.Errorf("the header claims %d channels at %d Hz, want %d at 48000",
					facts.Channels, facts.SampleRate, tt.channels)
			}
			if len(facts.Repairs) > 0 {
				t.Errorf("the header needs the repairs %q, want none", facts.Repairs)
			}
			if tt.frames > 0 && facts.Plain() != tt.plain {
				t.Errorf("Plain = %v, want %v", facts.Plain(), tt.plain)
			}
		})
	}
}

func TestSeekInViews(t *testing.T) {
	v := NewView(silence{1, 100})
	for _, tt := range []struct {
		offset  int64
		whence  int
		want    int64
		wantErr bool
	}{
		{offset: 10, whence: io.SeekStart, want: 10},
		{offset: 5, whence: io.SeekCurrent, want: 15},
		{offset: -20, whence: io.SeekCurrent, wantErr: true},
		{offset: -4, whence: io.SeekEnd, want: 240},
		{offset: 7, whence: io.SeekEnd, want: 251},
		{offset: -1, whence: io.SeekStart, wantErr: true},
		{offset: 0, whence: 9, wantErr: true},
		{offset: 0, whence: io.SeekCurrent, want: 251},
	} {
		got, err := v.Seek(tt.offset, tt.whence)
		if tt.wantErr {
			if err == nil {
				t.Errorf("Seek(%d, %d) = %d, want an error", tt.offset, tt.whence, got)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("Seek(%d, %d) = %d, %v, want %d", tt.offset, tt.whence, got, err, tt.want)
		}
	}

	if n, err := v.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("Read after the end = %d, %v, want EOF", n, err)
	}
}

// TestPlain shows that only files that every player can read are plain.
func TestPlain(t *testing.T) {
	plain := []string{
		"bext_before_fmt.wav", "canonical_44.wav", "chunk_odd_padded.wav", "clipped_dc.wav", "fmt18.wav",
		"four_channels.wav", "header_only_44.wav", "junk_align_4096.wav", "list_before_data.wav",
		"one_mp3_frame.wav", "one_sample.wav", "pcm_11025.wav", "pcm_44100.wav", "rate_odd_6000.wav",
		"silence.wav", "speech_s16_16k.wav", "speech_s16_48k.wav", "speech_s16_8k.wav",
		"speech_stereo_8k.wav", "trailing_chunks.wav",
	}
	for name := range expectations(t) {
		s := open(t, name, nil)
		if s == nil {
			continue
		}
		got, want := s.facts.Plain(), slices.Contains(plain, name)
		if got != want {
			t.Errorf("Plain of %s = %v, want %v", name, got, want)
		}
	}
}
