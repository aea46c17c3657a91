package mp3

import (
	"bytes"
	"errors"
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
	l.first, l.last = min(l.first, at), max(l.last, at+int64(n))
	return n, nil
}

// TestLongLengths encodes hours and years of audio. The size must be correct, and reading the end
// of the stream must read only the end of the source.
func TestLongLengths(t *testing.T) {
	for _, f := range rates {
		for _, frames := range []int64{10 * 3600 * int64(f.rate), 1 << 40} {
			src := &long{rate: f.rate, channels: 2, frames: frames}
			s := newStream(t, src)
			seconds := float64(frames) / float64(f.rate)
			if got, want := float64(s.Size()), seconds*float64(f.stereo)*125; math.Abs(got-want) > 0.001*want {
				t.Errorf("%d frames of %d a second are %.0f bytes, want about %.0f", frames, f.rate, got, want)
			}

			if _, err := s.Seek(-100, io.SeekEnd); err != nil {
				t.Fatal(err)
			}
			if src.last != 0 {
				t.Errorf("New and Seek read samples, want none")
			}

			if tail, err := io.ReadAll(s); err != nil || len(tail) != 100 {
				t.Errorf("reading the last 100 bytes returned %d bytes, %v", len(tail), err)
			}
			if src.last != frames || src.first < frames-20000 {
				t.Errorf("the last 100 bytes need the frames %d to %d of %d, want few", src.first, src.last, frames)
			}
		}
	}
}

// TestFirstRead reads into a large buffer. The first Read must return at most the ID3 tag and one
// frame, which it computes without samples. Later Reads must not encode more than was requested.
func TestFirstRead(t *testing.T) {
	src := &long{rate: 8000, channels: 1, frames: 1 << 20}
	s := newStream(t, src)
	room := make([]byte, 1<<20)
	if n, err := s.Read(room); n == 0 || n > len(id3)+int(s.f.size) || err != nil || src.last != 0 {
		t.Errorf("the first read is %d bytes, %v, and reads %d frames, want one MP3 frame and none", n, err, src.last)
	}

	for range 20 {
		before := s.pos
		if n, err := s.Read(room); err != nil || int64(n) > (maxAhead+1)*s.f.size {
			t.Fatalf("reading at %d: %d bytes, %v, want at most maxAhead frames", before, n, err)
		}
		if allowed := (s.pos/s.f.size+2)*576 + 2*blockFrames; src.last > allowed {
			t.Fatalf("%d bytes need %d frames, want at most %d", s.pos, src.last, allowed)
		}
	}
}

func TestRefused(t *testing.T) {
	tests := []struct {
		rate, channels int
		frames         int64
	}{{0, 1, 1}, {-8000, 1, 1}, {999, 1, 1}, {4 << 30, 1, 1}, {8000, 0, 1}, {8000, -1, 1}, {8000, 3, 1},
		{8000, 1, -1}}
	for _, tt := range tests {
		src := &long{rate: tt.rate, channels: tt.channels, frames: tt.frames}
		if _, err := New(src); !errors.Is(err, ErrSource) {
			t.Errorf("New(%+v) = %v, want ErrSource", tt, err)
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
		if n, err := io.Copy(io.Discard, s); err != nil || n == 0 {
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

// FuzzStream encodes arbitrary samples. Nothing may panic, each frame must fit, and reading any
// range must give the same bytes as reading the whole stream.
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
		src := &clip{rates[uint(rate)%9].rate, 1 + int(uint(channels)%2), nil}

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
			if half, err := io.ReadAll(s); err != nil || !bytes.Equal(half, whole[len(whole)/2:]) {
				t.Errorf("the second half differs: %v", err)
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
