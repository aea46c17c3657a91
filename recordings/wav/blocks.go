package wav

import "io"

// A decoder decodes a block of bytes into samples. It fills dst.
type decoder interface {
	block(dst []int16, src []byte)
}

// blocks reads audio that is coded in blocks. It decodes one block at a time, and keeps the last
// block.
type blocks struct {
	decoder decoder
	marks   *marks // nil if blocks are independent
	file    window
	bytes   int64 // bytes per block
	frames  int   // frames per block
	facts   Facts

	held    int64   // number of the block in samples, or -1
	samples []int16 // samples of a block, over all channels
}

// newBlocks returns a reader for a codec with blocks, or nil for another codec.
func newBlocks(r io.ReaderAt, f Facts) *blocks {
	b := &blocks{bytes: int64(f.BlockAlign), frames: f.BlockFrames, facts: f, held: -1}
	var state resumable
	switch f.Codec {
	case "adpcm_ima_wav":
		b.decoder = ima{f.Channels}
	case "adpcm_ms":
		b.decoder = ms{make([]msChannel, f.Channels)}
	case "gsm_ms":
		state = &gsm{wav49: true}
	case "gsm":
		state = &gsm{}
	case "g722":
		state = &g722{}
		b.bytes, b.frames = g722Block, 2*g722Block
	default:
		return nil
	}

	if state != nil {
		count := (f.Length + b.bytes - 1) / b.bytes
		b.decoder = state
		b.marks = newMarks(state, count, f.SampleRate/b.frames)
	}

	b.samples = make([]int16, b.frames*f.Channels)
	b.file = window{
		file:  r,
		start: f.Offset,
		end:   f.Offset + f.Length,
		buf:   make([]byte, 0, max(windowBytes, int(b.bytes))),
	}
	return b
}

// readFrames fills dst with frames, beginning with frame number at. All of these frames must exist.
func (b *blocks) readFrames(dst []int16, at int64) error {
	channels, size := b.facts.Channels, int64(b.frames)
	for len(dst) > 0 {
		number, skip := at/size, int(at%size)*channels

		// A whole block is decoded directly into dst. The last block is held, because the caller
		// may continue with its last frame.
		if number != b.held && skip == 0 && len(dst) > len(b.samples) {
			if err := b.decode(dst[:len(b.samples)], number); err != nil {
				return err
			}
			dst = dst[len(b.samples):]
			at += size
			continue
		}

		if err := b.hold(number); err != nil {
			return err
		}
		n := copy(dst, b.samples[skip:])
		dst = dst[n:]
		at += int64(n / channels)
	}
	return nil
}

// hold decodes a block into b.samples, unless it is already there.
func (b *blocks) hold(number int64) error {
	if b.held == number {
		return nil
	}
	b.held = -1
	if err := b.decode(b.samples, number); err != nil {
		return err
	}
	b.held = number
	return nil
}

// decode decodes a block into dst, which has room for a whole block. If the decoder depends on
// earlier blocks, decode decodes the earlier blocks first.
func (b *blocks) decode(dst []int16, number int64) error {
	first := number
	if b.marks != nil {
		first = b.marks.seek(number)
	}

	for i := first; i <= number; i++ {
		src, err := b.file.read(i*b.bytes, b.bytes)
		if err != nil {
			return err
		}
		length := min(len(dst), b.facts.samplesIn(len(src)))
		b.decoder.block(dst[:length], src)
		if b.marks != nil {
			b.marks.passed(i)
		}
	}
	return nil
}

// samplesIn returns the number of samples, over all channels, in this many bytes.
func (f *Facts) samplesIn(bytes int) int { return int(f.frames(int64(bytes))) * f.Channels }

// A window reads a part of a file, and keeps some of its bytes in memory.
type window struct {
	file       io.ReaderAt
	start, end int64
	buf        []byte
	offset     int64 // position of buf, relative to start
}

// read returns n bytes at an offset from start. At the end, it returns fewer. The bytes are valid
// until the next call of read.
func (w *window) read(offset, n int64) ([]byte, error) {
	left := w.end - w.start - offset
	n = min(n, left)
	if offset < w.offset || offset+n > w.offset+int64(len(w.buf)) {
		w.buf = w.buf[:min(int64(cap(w.buf)), left)]
		if err := readAt(w.file, w.buf, w.start+offset); err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
		w.offset = offset
	}
	return w.buf[offset-w.offset:][:n], nil
}
