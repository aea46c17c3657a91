package mp3

import (
	"errors"
	"fmt"
	"io"
)

// A Stream is an MP3 file that is computed where it is read. Seeking costs nothing.
// It is for one goroutine at a time.
type Stream struct {
	f      *format
	enc    *encoder
	frames int64 // of audio, after the first one, which is the tag
	size   int64
	in     int64 // samples a channel
	pos    int64
	buf    []byte // the frame held
	held   int64  // its number, -1 for none
	ahead  int    // frames that the next Read may encode
}

var _ io.ReadSeeker = (*Stream)(nil)

// maxAhead bounds the frames of one Read, so that who reads into much memory gets
// what is done before it is all done.
const maxAhead = 64

// New makes a stream of a source, at the rate of Layer III that is next to the
// source's and the bit rate that goes with it. It reads nothing. Where no MP3 can be
// made of such audio, as of more than two channels, it gives ErrSource.
func New(src Source) (*Stream, error) {
	f, err := formatOf(src.Rate(), src.Channels())
	if err != nil {
		return nil, err
	}
	if src.Frames() < 0 {
		return nil, fmt.Errorf("%w: %d frames", ErrSource, src.Frames())
	}
	if src.Rate() != f.rate {
		src = newResampled(src, f.rate)
	}
	s := &Stream{f: f, in: src.Frames(), held: -1, ahead: 1}
	s.frames = f.frames(s.in)
	s.size = int64(len(id3)) + f.offset(1+s.frames)
	s.enc = newEncoder(f, src)
	s.buf = make([]byte, f.size+1)
	return s, nil
}

// Size is the length of the whole file in bytes.
func (s *Stream) Size() int64 { return s.size }

// Seek sets where the next Read begins.
func (s *Stream) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += s.pos
	case io.SeekEnd:
		offset += s.size
	default:
		return 0, errors.New("mp3: no such origin to seek from")
	}
	if offset < 0 {
		return 0, errors.New("mp3: a position before the beginning")
	}
	if offset != s.pos {
		s.ahead = 1
	}
	s.pos = offset
	return offset, nil
}

// Read encodes the frames that p has room for, and no further. The first Read after
// a Seek gives one frame, and each one after it may give twice as much as the last,
// so that who waits for the first byte waits for one frame only.
func (s *Stream) Read(p []byte) (n int, err error) {
	if s.pos >= s.size {
		return 0, io.EOF
	}
	for i := 0; i < s.ahead && n < len(p) && s.pos < s.size; i++ {
		part, err := s.at(s.pos)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], part)
		n += k
		s.pos += int64(k)
	}
	s.ahead = min(2*s.ahead, maxAhead)
	return n, nil
}

// at returns the bytes from pos to the end of the frame in which it lies.
func (s *Stream) at(pos int64) ([]byte, error) {
	if pos < int64(len(id3)) {
		return []byte(id3[pos:]), nil
	}
	pos -= int64(len(id3))
	frame := s.f.frameAt(pos)
	if err := s.hold(frame); err != nil {
		return nil, fmt.Errorf("encoding frame %d: %w", frame, err)
	}
	return s.buf[pos-s.f.offset(frame):], nil
}

// hold makes the bytes of a frame unless they are held.
func (s *Stream) hold(frame int64) error {
	if s.held == frame {
		return nil
	}
	s.held = -1
	padded := s.f.padded(frame)
	s.buf = s.buf[:s.f.offset(frame+1)-s.f.offset(frame)]
	if frame == 0 {
		s.f.tag(s.buf, s.in, s.size-int64(len(id3)))
	} else if err := s.enc.frame(frame-1, padded, s.buf); err != nil {
		return err
	}
	s.held = frame
	return nil
}
