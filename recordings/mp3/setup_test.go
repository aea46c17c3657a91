package mp3

import (
	"io"
	"math/rand/v2"
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
	return copy(dst[:len(dst)/c.channels*c.channels], c.samples[at*int64(c.channels):]) / c.channels, nil
}

// makeClip returns a clip with intermittent noise, beeps and silence.
func makeClip(rate, channels, frames int) *clip {
	random := rand.New(rand.NewPCG(uint64(rate), uint64(channels)))
	c := &clip{rate, channels, make([]int16, frames*channels)}
	level, period := 0, 1
	for i := range frames {
		if i%(rate/20+1) == 0 {
			level, period = random.IntN(12000)*random.IntN(3), 2+random.IntN(40)
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
