package mp3

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A clip is a source in memory.
type clip struct {
	rate, channels int
	samples        []int16
}

func (c *clip) Rate() int     { return c.rate }
func (c *clip) Channels() int { return c.channels }
func (c *clip) Frames() int64 { return int64(len(c.samples) / c.channels) }

func (c *clip) ReadFrames(dst []int16, at int64) (int, error) {
	if at >= c.Frames() {
		return 0, io.EOF
	}
	whole := dst[:len(dst)/c.channels*c.channels]
	return copy(whole, c.samples[at*int64(c.channels):]) / c.channels, nil
}

// makeClip returns a clip in which noisy beeps alternate with silence.
func makeClip(rate, channels, frames int) *clip {
	random := rand.New(rand.NewPCG(uint64(rate), uint64(channels)))
	c := &clip{rate: rate, channels: channels, samples: make([]int16, frames*channels)}
	level, period := 0, 1
	for i := range frames {
		if i%(rate/20+1) == 0 {
			level = random.IntN(12000) * random.IntN(3)
			period = 2 + random.IntN(40)
		}
		for ch := range channels {
			tone := level
			if (i*(ch+1)/period)&1 == 1 {
				tone = -level
			}
			c.samples[i*channels+ch] = int16(tone + random.IntN(level/4+1))
		}
	}
	return c
}

func newStream(t testing.TB, src Source) *Stream {
	t.Helper()
	s, err := New(src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// encode returns the whole stream of a source.
func encode(t testing.TB, src Source) []byte {
	t.Helper()
	s := newStream(t, src)
	data, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(data)) != s.Size() {
		t.Fatalf("Size = %d, but the stream has %d bytes", s.Size(), len(data))
	}
	return data
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

// samplesOf returns all samples of a file.
func samplesOf(t testing.TB, f *File) []int16 {
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

// ffmpeg returns the output of ffmpeg. In args, %in stands for a file with the content in.
func ffmpeg(t testing.TB, in []byte, args string) []byte {
	t.Helper()
	return program(t, "ffmpeg", in, "-v error "+args+" -")
}

// lame encodes a WAV file as MP3.
func lame(t testing.TB, wave []byte, args string) []byte {
	t.Helper()
	return program(t, "lame", wave, "--quiet "+args+" %in -")
}

// program returns the output of a program. In args, %in stands for a file with the content in.
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
