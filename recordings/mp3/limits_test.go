package mp3

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// A long is a silent source that records which of its frames are read.
type long struct {
	rate, channels int
	frames         int64
	first, last    int64
	err            error
}

func (l *long) Rate() int     { return l.rate }
func (l *long) Channels() int { return l.channels }
func (l *long) Frames() int64 { return l.frames }

func (l *long) ReadFrames(dst []int16, at int64) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	clear(dst)
	n := int(min(int64(len(dst)/l.channels), l.frames-at))
	if l.last == 0 {
		l.first = at
	}
	l.first = min(l.first, at)
	l.last = max(l.last, at+int64(n))
	return n, nil
}

// TestLongLengths opens streams of hours and years of audio. The size must be correct, and reading
// the end of the stream must read only the end of the source.
func TestLongLengths(t *testing.T) {
	for _, r := range rates {
		for _, frames := range []int64{10 * 3600 * int64(r.rate), 1 << 40} {
			t.Run(fmt.Sprintf("%d frames at %d Hz", frames, r.rate), func(t *testing.T) {
				src := &long{rate: r.rate, channels: 2, frames: frames}
				s := newStream(t, src)
				seconds := float64(frames) / float64(r.rate)
				got, want := float64(s.Size()), seconds*float64(r.stereo)*125
				if math.Abs(got-want) > 0.001*want {
					t.Errorf("the size is %.0f bytes, want about %.0f", got, want)
				}

				if _, err := s.Seek(-100, io.SeekEnd); err != nil {
					t.Fatal(err)
				}
				if src.last != 0 {
					t.Error("New and Seek read samples, want none")
				}

				tail, err := io.ReadAll(s)
				if err != nil || len(tail) != 100 {
					t.Errorf("reading the last 100 bytes returns %d bytes, %v, want 100", len(tail), err)
				}
				if src.last != frames {
					t.Errorf("the last 100 bytes need the frames up to %d, want %d", src.last, frames)
				}
				if earliest := frames - 20000; src.first < earliest {
					t.Errorf("the last 100 bytes need the frames from %d, want at least %d", src.first, earliest)
				}
			})
		}
	}
}

// TestFirstRead reads into a large buffer. The first Read must return at most the ID3 tag and one
// frame, which it computes without samples. Later Reads must not encode more than was requested.
func TestFirstRead(t *testing.T) {
	src := &long{rate: 8000, channels: 1, frames: 1 << 20}
	s := newStream(t, src)
	buf := make([]byte, 1<<20)
	n, err := s.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if limit := len(id3) + int(s.f.size); n == 0 || n > limit {
		t.Errorf("the first Read returns %d bytes, want 1 to %d", n, limit)
	}
	if src.last != 0 {
		t.Errorf("the first Read reads %d frames of the source, want none", src.last)
	}

	for range 20 {
		before := s.pos
		n, err := s.Read(buf)
		if err != nil {
			t.Fatalf("reading at %d: %v", before, err)
		}
		if limit := (maxAhead + 1) * s.f.size; int64(n) > limit {
			t.Fatalf("reading at %d: %d bytes, want at most %d", before, n, limit)
		}
		if limit := (s.pos/s.f.size+2)*576 + 2*blockFrames; src.last > limit {
			t.Fatalf("%d bytes need %d frames, want at most %d", s.pos, src.last, limit)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, src := range []long{
		{rate: 0, channels: 1, frames: 1},
		{rate: -8000, channels: 1, frames: 1},
		{rate: 999, channels: 1, frames: 1},
		{rate: 4 << 30, channels: 1, frames: 1},
		{rate: 8000, channels: 0, frames: 1},
		{rate: 8000, channels: -1, frames: 1},
		{rate: 8000, channels: 3, frames: 1},
		{rate: 8000, channels: 1, frames: -1},
	} {
		if _, err := New(&src); !errors.Is(err, ErrSource) {
			t.Errorf("New(%+v) = %v, want ErrSource", src, err)
		}
	}
}

// TestFailingSource shows that Read returns an error if the source fails or ends too early.
func TestFailingSource(t *testing.T) {
	broken := errors.New("broken")
	for _, rate := range []int{8000, 9000} {
		src := &long{rate: rate, channels: 2, frames: 1 << 20}
		s := newStream(t, src)
		src.err = broken
		if _, err := io.ReadAll(s); !errors.Is(err, broken) {
			t.Errorf("a broken source at %d returns %v, want its error", rate, err)
		}

		src.err = io.EOF
		if _, err := io.ReadAll(s); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a source that ends early at %d returns %v, want io.ErrUnexpectedEOF", rate, err)
		}

		src.err = nil
		n, err := io.Copy(io.Discard, s)
		if err != nil || n == 0 {
			t.Errorf("a recovered source at %d returns %d bytes, %v, want the rest", rate, n, err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	s := newStream(t, makeClip(8000, 2, 100000))
	buf := make([]byte, s.f.size)
	n := int64(0)
	allocations := testing.AllocsPerRun(100, func() {
		if err := s.enc.frame(n, false, buf); err != nil {
			t.Fatal(err)
		}
		n++
	})
	if allocations != 0 {
		t.Errorf("a frame takes %v allocations, want none", allocations)
	}
}

// FuzzStream encodes arbitrary samples. Nothing may panic, each frame must fit, and reading the
// second half must return the same bytes as reading the whole stream.
func FuzzStream(f *testing.F) {
	square := bytes.Repeat([]byte{0xff, 0x7f, 0xff, 0x7f, 0, 0x80, 0, 0x80}, 2000)
	f.Add(0, 1, []byte{})
	f.Add(0, 1, square)
	f.Add(8, 2, square)
	f.Add(6, 2, bytes.Repeat([]byte{0, 0x80}, 5000))
	f.Add(3, 1, append(make([]byte, 4001), square...))

	// Encoding one second at 8 kHz takes about 10 ms, and reading its second half again takes half
	// as long.
	bound := fuzzcost.Bound{CPU: 30 * time.Millisecond, CPUPerByte: 10 * time.Microsecond, Heap: 8 << 20, PerByte: 64}
	f.Fuzz(func(t *testing.T, rate, channels int, data []byte) {
		src := &clip{rate: rates[uint(rate)%9].rate, channels: 1 + int(uint(channels)%2)}
		for len(data) >= 2*src.channels && len(src.samples) < 1<<15 {
			for range src.channels {
				src.samples = append(src.samples, int16(data[0])|int16(data[1])<<8)
				data = data[2:]
			}
		}

		bound.Check(t, 2*src.channels*len(src.samples), func() {
			whole := encode(t, src)
			s := newStream(t, src)
			if _, err := s.Seek(int64(len(whole)/2), io.SeekStart); err != nil {
				t.Fatal(err)
			}
			half, err := io.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(half, whole[len(whole)/2:]) {
				t.Error("the second half differs from that of the whole stream")
			}
		})
	})
}

// BenchmarkRange reads 64 KiB from the middle of ten hours of audio.
func BenchmarkRange(b *testing.B) {
	src := &loop{*makeClip(8000, 1, 100003), 10 * 3600 * 8000}
	for b.Loop() {
		s := newStream(b, src)
		if _, err := s.Seek(s.Size()/2, io.SeekStart); err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, s, 64<<10); err != nil {
			b.Fatal(err)
		}
	}
}

// A loop is a source that repeats a clip that has one channel.
type loop struct {
	clip
	frames int64
}

func (l *loop) Frames() int64 { return l.frames }

func (l *loop) ReadFrames(dst []int16, at int64) (int, error) {
	return copy(dst, l.samples[at%int64(len(l.samples)):]), nil
}
