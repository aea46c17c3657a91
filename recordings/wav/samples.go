package wav

import (
	"errors"
	"fmt"
	"io"
)

// windowBytes is about what is read of a file at once.
const windowBytes = 16 << 10

// Samples is the audio of a file as a [Source].
type Samples struct {
	facts  Facts
	plain  *plain // one of them is not nil
	blocks *blocks
}

// Open returns the audio of a file whose facts are known. index gives that of the
// same file, from [Samples.Index], and is called only where it helps; where it is nil
// or returns nothing, or one that is damaged or another's, reading from the middle may
// have to decode what is before. What it gives is kept, so it must not be changed. A
// file that cannot be converted is an [ErrCodec].
func Open(r io.ReaderAt, f Facts, index func() ([]byte, error)) (*Samples, error) {
	s := &Samples{facts: f, plain: newPlain(r, f), blocks: newBlocks(r, f)}
	if s.plain == nil && s.blocks == nil {
		return nil, fmt.Errorf("%w: %s is kept as it came and cannot be converted", ErrCodec, f.Codec)
	}
	if s.blocks != nil && s.blocks.marks != nil && index != nil {
		marks, err := index()
		if err != nil {
			return nil, fmt.Errorf("reading index: %w", err)
		}
		s.blocks.marks.use(marks, f)
	}
	return s, nil
}

// Rate is the sample rate in Hz, as it is in the file.
func (s *Samples) Rate() int { return s.facts.SampleRate }

// Channels is the number of channels, as it is in the file.
func (s *Samples) Channels() int { return s.facts.Channels }

// Frames is the number of frames.
func (s *Samples) Frames() int64 { return s.facts.Frames }

// Index returns what a later [Open] of the same file needs so that reading from its
// middle is fast, once it was read to its end from the start; at most 600 KB. It
// is nil where it would not help.
func (s *Samples) Index() []byte {
	if s.blocks == nil || s.blocks.marks == nil {
		return nil
	}
	return s.blocks.marks.index(s.facts)
}

// ReadFrames is as [Source] says. A file that is shorter than its facts say is an
// [io.ErrUnexpectedEOF].
func (s *Samples) ReadFrames(dst []int16, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("reading audio: negative position")
	}
	n = len(dst) / s.facts.Channels
	if left := max(0, s.facts.Frames-at); int64(n) > left {
		n, err = int(left), io.EOF
	}
	dst = dst[:n*s.facts.Channels]
	var failed error
	if s.blocks != nil {
		failed = s.blocks.readFrames(dst, at)
	} else {
		failed = s.plain.readFrames(dst, at)
	}
	if failed != nil {
		return 0, fmt.Errorf("reading audio: %w", failed)
	}
	return n, err
}

// plain reads audio in which each sample stands for itself.
type plain struct {
	file   io.ReaderAt
	facts  Facts
	decode func(dst []int16, src []byte)
	buf    []byte
}

// newPlain returns a reader for such codecs, nil for others.
func newPlain(r io.ReaderAt, f Facts) *plain {
	decode := direct(f.Codec)
	if decode == nil {
		return nil
	}
	return &plain{file: r, facts: f, decode: decode, buf: make([]byte, windowBytes/f.BlockAlign*f.BlockAlign)}
}

// readFrames fills dst with frames from frame at on, all of which are there.
func (p *plain) readFrames(dst []int16, at int64) error {
	align := p.facts.BlockAlign
	for len(dst) > 0 {
		n := min(len(dst)/p.facts.Channels, len(p.buf)/align)
		src := p.buf[:n*align]
		if err := readAt(p.file, src, p.facts.Offset+at*int64(align)); err != nil {
			return err
		}
		p.decode(dst[:n*p.facts.Channels], src)
		dst, at = dst[n*p.facts.Channels:], at+int64(n)
	}
	return nil
}

// readBytes fills b with the audio as it is in the file, from one of its bytes on.
func (p *plain) readBytes(b []byte, from int64) (int, error) {
	if err := readAt(p.file, b, p.facts.Offset+from); err != nil {
		return 0, fmt.Errorf("reading audio: %w", err)
	}
	return len(b), nil
}

// readAt fills p from an offset of a file.
func readAt(file io.ReaderAt, p []byte, offset int64) error {
	n, err := file.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}
