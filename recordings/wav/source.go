package wav

import "io"

// A Source is audio as 16-bit samples, whose length is known and which can be
// read from any frame. What it gives for a frame never depends on what was read
// before. It is not for several goroutines at once.
type Source interface {
	Rate() int     // frames a second
	Channels() int // samples of a frame
	Frames() int64
	// ReadFrames fills dst, which holds a whole number of interleaved frames, with
	// those from frame at on, and gives how many frames it filled. Fewer than asked
	// for come only with an error; at the end of the audio that is [io.EOF].
	ReadFrames(dst []int16, at int64) (n int, err error)
}

// mixFrames are read at once from the source of a mix or of a leg.
const mixFrames = 1024

// Mix returns the mean of all channels of a source as one channel, to the nearest,
// halves up. Audio of one channel is given as it is.
func Mix(s Source) Source {
	if s.Channels() == 1 {
		return s
	}
	return &mono{Source: s, one: mean, buf: make([]int16, mixFrames*s.Channels())}
}

// Leg returns one channel of a source, n from 1 to its Channels.
func Leg(s Source, n int) Source {
	if n == 1 && s.Channels() == 1 {
		return s
	}
	pick := func(frame []int16) int16 { return frame[n-1] }
	return &mono{Source: s, one: pick, buf: make([]int16, mixFrames*s.Channels())}
}

// mean is the mean of the samples of a frame.
func mean(frame []int16) int16 {
	sum, n := len(frame), 2*len(frame)
	for _, v := range frame {
		sum += 2 * int(v)
	}
	if sum < 0 {
		sum -= n - 1 // division is to round down
	}
	return int16(sum / n)
}

// mono makes one channel out of several.
type mono struct {
	Source
	one func(frame []int16) int16
	buf []int16
}

// Channels is one.
func (m *mono) Channels() int { return 1 }

// ReadFrames makes a sample of each frame of the source.
func (m *mono) ReadFrames(dst []int16, at int64) (n int, err error) {
	channels := m.Source.Channels()
	for n < len(dst) && err == nil {
		want := min(len(dst)-n, mixFrames)
		var got int
		got, err = m.Source.ReadFrames(m.buf[:want*channels], at+int64(n))
		for i := range got {
			dst[n+i] = m.one(m.buf[i*channels : (i+1)*channels])
		}
		n += got
	}
	if n == len(dst) && err == io.EOF {
		err = nil
	}
	return n, err
}
