package mp3

import (
	"errors"
	"fmt"
	"io"
)

// An input returns the samples of a source by channel. Before the first sample and after the last
// sample, it returns zeros. It reads in blocks and keeps the last block.
type input struct {
	src    Source
	frames int64
	back   int         // number of frames that remain available before the requested frame
	block  [][]float32 // one slice per channel
	from   int64       // first frame in block
	have   int         // number of frames in block
	wide   []int16     // interleaved frames from src
}

// blockFrames is the minimum number of frames in a block. Reading this many costs little per frame,
// and does not delay short ranges much.
const blockFrames = 4096

// newInput returns an input for src. A call of samples may request at most back frames.
func newInput(src Source, back int) *input {
	in := &input{src: src, frames: src.Frames(), back: back, block: make([][]float32, src.Channels())}
	size := max(blockFrames, 2*back)
	for ch := range in.block {
		in.block[ch] = make([]float32, size)
	}
	in.wide = make([]int16, size*len(in.block))
	return in
}

// samples returns n samples of a channel, beginning with frame at, which may be negative. They are
// valid until the next call.
func (in *input) samples(ch int, at int64, n int) ([]float32, error) {
	if at < in.from || at+int64(n) > in.from+int64(in.have) {
		if err := in.fetch(at); err != nil {
			return nil, err
		}
	}
	return in.block[ch][at-in.from:][:n], nil
}

// fetch fills the block, which begins in.back frames before at.
func (in *input) fetch(at int64) error {
	from, kept := at-int64(in.back), 0
	if end := in.from + int64(in.have); from >= in.from && from < end {
		kept = int(end - from)
		for _, x := range in.block {
			copy(x, x[in.have-kept:in.have])
		}
	}

	in.have = 0
	if err := in.fill(from, kept); err != nil {
		return fmt.Errorf("reading samples from frame %d: %w", max(0, from+int64(kept)), err)
	}
	in.from, in.have = from, len(in.block[0])
	return nil
}

// fill reads the block that begins with frame from. have is the number of frames that the block
// already contains.
func (in *input) fill(from int64, have int) error {
	size := len(in.block[0])
	for have < size {
		at := from + int64(have)
		if at < 0 || at >= in.frames {
			end := size
			if at < 0 {
				end = int(min(int64(size), -from))
			}
			for _, x := range in.block {
				clear(x[have:end])
			}
			have = end
			continue
		}

		channels := len(in.block)
		want := int(min(int64(size-have), in.frames-at))
		n, err := in.src.ReadFrames(in.wide[:want*channels], at)
		if n <= 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}

		for ch, x := range in.block {
			for i := range n {
				x[have+i] = float32(in.wide[i*channels+ch])
			}
		}
		have += n
	}
	return nil
}
