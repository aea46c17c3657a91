package wav

import "io"

// A Source is audio as 16-bit samples. Its length is known, and it can be read from any frame. The
// samples of a frame never depend on what was read before. A Source is not safe for concurrent use.
type Source interface {
	Rate() int     // frames per second
	Channels() int // samples per frame
	Frames() int64
	// ReadFrames fills dst with interleaved frames, beginning with frame number at. The length of dst
	// is a whole number of frames. ReadFrames returns the number of frames that it filled. If this is
	// less than requested, it also returns an error, which is [io.EOF] at the end of the audio.
	ReadFrames(dst []int16, at int64) (n int, err error)
}

// mixFrames is the number of frames that Mix and Leg read from their source at a time.
const mixFrames = 1024

// Mix returns the mean of all channels as one channel. Means are rounded to the nearest value,
// halves up. If s has one channel, Mix returns s.
func Mix(s Source) Source {
	if s.Channels() == 1 {
		return s
	}
	return &mono{Source: s, reduce: mean, buf: make([]int16, mixFrames*s.Channels())}
}

// Leg returns channel n of a source. Channels are counted from 1.
func Leg(s Source, n int) Source {
	if n == 1 && s.Channels() == 1 {
		return s
	}
	pick := func(frame []int16) int16 { return frame[n-1] }
	return &mono{Source: s, reduce: pick, buf: make([]int16, mixFrames*s.Channels())}
}

// mean returns the mean of the samples in a frame.
func mean(frame []int16) int16 {
	sum, n := len(frame), 2*len(frame)
	for _, v := range frame {
		sum += 2 * int(v)
	}
	if sum < 0 {
		sum -= n - 1 // now, the division rounds down
	}
	return int16(sum / n)
}

// A mono is a source that computes one channel from the channels of another source.
type mono struct {
	Source
	reduce func(frame []int16) int16 // returns the sample of the channel
	buf    []int16
}

// Channels returns 1.
func (m *mono) Channels() int { return 1 }

// ReadFrames computes one sample from each frame of the source.
func (m *mono) ReadFrames(dst []int16, at int64) (n int, err error) {
	channels := m.Source.Channels()
	for n < len(dst) && err == nil {
		want := min(len(dst)-n, mixFrames)
		var got int
		got, err = m.Source.ReadFrames(m.buf[:want*channels], at+int64(n))
		for i := range got {
			dst[n+i] = m.reduce(m.buf[i*channels : (i+1)*channels])
		}
		n += got
	}
	if n == len(dst) && err == io.EOF {
		err = nil
	}
	return n, err
}
