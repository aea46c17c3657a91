package mp3

import (
	"errors"
	"fmt"
	"io"
)

// A Stream is an MP3 file that is computed while it is read. Seeking takes no time. A Stream is not
// safe for concurrent use.
type Stream struct {
	f      *format
	enc    *encoder
	frames int64 // number of audio frames, without the frame with the tag
	size   int64
	in     int64 // samples per channel
	pos    int64
	buf    []byte // the current frame
	held   int64  // number of the frame in buf, or -1
	ahead  int    // maximum number of frames that the next Read encodes
}

var _ io.ReadSeeker = (*Stream)(nil)

// maxAhead is the maximum number of frames per Read. With this limit, a caller with a large buffer
// gets the first bytes before all frames are encoded.
const maxAhead = 64

// New returns a stream of src, without reading from src. The stream has a sample rate of Layer III
// that suits the source, and the bit rate for this sample rate. If the audio cannot be encoded, for
// example because it has more than two channels, New returns ErrSource.
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

// Size returns the length of the whole file in bytes.
func (s *Stream) Size() int64 { return s.size }

// Seek sets the position of the next Read. It implements [io.Seeker].
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
		return 0, errors.New("mp3: seeking to a position before the beginning")
	}
	if offset != s.pos {
		s.ahead = 1
	}
	s.pos = offset
	return offset, nil
}

// Read encodes only as many frames as fit into p. The first Read after a Seek to another position
// returns at most one frame, so that its caller does not wait for more. Each later Read may return
// twice as many frames as the previous Read.
func (s *Stream) Read(p []byte) (n int, err error) {
	if s.pos >= s.size {
		return 0, io.EOF
	}
	for i := 0; i < s.ahead && n < len(p) && s.pos < s.size; i++ {
		part, err := s.bytesAt(s.pos)
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

// bytesAt returns the bytes from pos to the end of the frame that contains pos.
func (s *Stream) bytesAt(pos int64) ([]byte, error) {
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

// hold encodes a frame into buf, unless buf already contains it.
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
