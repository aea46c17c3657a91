package wav

import "io"

// A decoder decodes a block of bytes into samples. It fills dst.
type decoder interface {
	block(dst []int16, src []byte)
}

// A blocks reads audio that is coded in blocks. It decodes one block at a time, and keeps the last
// block.
type blocks struct {
	decoder decoder
	marks   *marks // nil if blocks are independent
	file    window
	bytes   int64 // bytes per block
	frames  int   // frames per block
	facts   Facts

	held int64 // number of the block in out, or -1
	out  []int16
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
		state, b.bytes, b.frames = &g722{}, g722Block, 2*g722Block
	default:
		return nil
	}

	if state != nil {
		b.decoder = state
		b.marks = newMarks(state, (f.Length+b.bytes-1)/b.bytes, f.SampleRate/b.frames)
	}

	b.out = make([]int16, b.frames*f.Channels)
	b.file = window{file: r, start: f.Offset, end: f.Offset + f.Length,
		buf: make([]byte, 0, max(windowBytes, int(b.bytes)))}
	return b
}

// readFrames fills dst with frames, beginning with frame at. All of these frames must exist.
func (b *blocks) readFrames(dst []int16, at int64) error {
	channels, size := b.facts.Channels, int64(b.frames)
	for len(dst) > 0 {
		n, skip := at/size, int(at%size)*channels
		out := b.out
		if n != b.held {
			// A whole block is decoded directly into dst. The last block is kept in out, because
			// the caller may continue with its last frame.
			direct := skip == 0 && len(dst) > len(out)
			if direct {
				out = dst[:len(out)]
			} else {
				b.held = -1
			}

			if err := b.decode(out, n); err != nil {
				return err
			}
			if direct {
				dst, at = dst[len(out):], at+size
				continue
			}
			b.held = n
		}

		done := copy(dst, out[skip:])
		dst, at = dst[done:], at+int64(done/channels)
	}
	return nil
}

// decode decodes block n into out, which has room for a whole block. If the decoder depends on
// earlier blocks, decode decodes the earlier blocks first.
func (b *blocks) decode(out []int16, n int64) error {
	from := n
	if b.marks != nil {
		from = b.marks.seek(n)
	}

	for i := from; i <= n; i++ {
		src, err := b.file.at(i*b.bytes, b.bytes)
		if err != nil {
			return err
		}
		b.decoder.block(out[:min(len(out), b.facts.samplesIn(len(src)))], src)
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

// at returns n bytes at an offset from start. At the end, it returns fewer. The bytes are valid
// until the next call of at.
func (w *window) at(offset, n int64) ([]byte, error) {
	n = min(n, w.end-w.start-offset)
	if held := int64(len(w.buf)); offset < w.offset || offset+n > w.offset+held {
		w.buf = w.buf[:min(int64(cap(w.buf)), w.end-w.start-offset)]
		if err := readAt(w.file, w.buf, w.start+offset); err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
		w.offset = offset
	}
	return w.buf[offset-w.offset:][:n], nil
}
