package wav

import (
	"errors"
	"fmt"
	"io"
)

// windowBytes is the approximate number of bytes read from a file at a time.
const windowBytes = 16 << 10

// Samples is the audio in a file, as a [Source].
type Samples struct {
	facts  Facts
	plain  *plain // exactly one of plain and blocks is not nil
	blocks *blocks
}

// Open returns the audio in a file whose facts are f. If the audio cannot be converted, it returns
// [ErrCodec].
//
// index returns the result of [Samples.Index] for the same file. Open calls it only for codecs that
// benefit from an index. It keeps the result, which must not be changed. Without an intact index,
// reading from the middle may have to decode everything before it.
func Open(r io.ReaderAt, f Facts, index func() ([]byte, error)) (*Samples, error) {
	s := &Samples{facts: f, plain: newPlain(r, f), blocks: newBlocks(r, f)}
	if s.plain == nil && s.blocks == nil {
		return nil, fmt.Errorf("%w: %s cannot be decoded or converted", ErrCodec, f.Codec)
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

// Rate returns the sample rate in Hz.
func (s *Samples) Rate() int { return s.facts.SampleRate }

// Channels returns the number of channels.
func (s *Samples) Channels() int { return s.facts.Channels }

// Frames returns the number of frames.
func (s *Samples) Frames() int64 { return s.facts.Frames }

// Index returns an index of the audio, which makes reading from the middle fast after a later
// [Open] of the same file. Call it after reading the audio from start to end. The index has at most
// 600 KB. Index returns nil if an index would not help.
func (s *Samples) Index() []byte {
	if s.blocks == nil || s.blocks.marks == nil {
		return nil
	}
	return s.blocks.marks.index(s.facts)
}

// ReadFrames implements [Source]. If the file is shorter than its facts say, it returns
// [io.ErrUnexpectedEOF].
func (s *Samples) ReadFrames(dst []int16, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("reading audio: negative position")
	}
	wanted := len(dst) / s.facts.Channels
	n = int(min(int64(wanted), max(0, s.facts.Frames-at)))
	dst = dst[:n*s.facts.Channels]
	if s.blocks != nil {
		err = s.blocks.readFrames(dst, at)
	} else {
		err = s.plain.readFrames(dst, at)
	}
	if err != nil {
		return 0, fmt.Errorf("reading audio: %w", err)
	}
	if n < wanted {
		return n, io.EOF
	}
	return n, nil
}

// plain reads audio whose samples are coded independently.
type plain struct {
	file   io.ReaderAt
	facts  Facts
	decode func(dst []int16, src []byte)
	buf    []byte
}

// newPlain returns a reader for a codec with independent samples, or nil for other codecs.
func newPlain(r io.ReaderAt, f Facts) *plain {
	decode := directDecoder(f.Codec)
	if decode == nil {
		return nil
	}
	return &plain{
		file:   r,
		facts:  f,
		decode: decode,
		buf:    make([]byte, windowBytes/f.BlockAlign*f.BlockAlign),
	}
}

// readFrames fills dst with frames, beginning with frame number at. All of these frames must exist.
func (p *plain) readFrames(dst []int16, at int64) error {
	align, channels := p.facts.BlockAlign, p.facts.Channels
	for len(dst) > 0 {
		n := min(len(dst)/channels, len(p.buf)/align)
		src := p.buf[:n*align]
		if err := readAt(p.file, src, p.facts.Offset+at*int64(align)); err != nil {
			return err
		}
		p.decode(dst[:n*channels], src)
		dst = dst[n*channels:]
		at += int64(n)
	}
	return nil
}

// readBytes fills b with the unconverted bytes of the audio, from the given offset on.
func (p *plain) readBytes(b []byte, offset int64) (int, error) {
	if err := readAt(p.file, b, p.facts.Offset+offset); err != nil {
		return 0, fmt.Errorf("reading audio: %w", err)
	}
	return len(b), nil
}

// readAt fills p with the bytes at an offset in the file.
func readAt(file io.ReaderAt, p []byte, offset int64) error {
	n, err := file.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
