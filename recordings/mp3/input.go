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
	first  int64       // first frame in block
	held   int         // number of frames in block
	read   []int16     // interleaved frames from src
}

// blockFrames is the minimum number of frames in a block. Reading this many costs little per frame,
// and does not delay short ranges much.
const blockFrames = 4096

// newInput returns an input for src. A call of samples may request at most back frames.
func newInput(src Source, back int) *input {
	size := max(blockFrames, 2*back)
	in := &input{
		src:    src,
		frames: src.Frames(),
		back:   back,
		block:  make([][]float32, src.Channels()),
		read:   make([]int16, size*src.Channels()),
	}
	for ch := range in.block {
		in.block[ch] = make([]float32, size)
	}
	return in
}

// samples returns n samples of a channel, beginning with frame number at, which may be negative. The
// samples are valid until the next call.
func (in *input) samples(ch int, at int64, n int) ([]float32, error) {
	if at < in.first || at+int64(n) > in.first+int64(in.held) {
		if err := in.fetch(at); err != nil {
			return nil, err
		}
	}
	return in.block[ch][at-in.first:][:n], nil
}

// fetch fills the block, beginning in.back frames before frame number at.
func (in *input) fetch(at int64) error {
	first, kept := at-int64(in.back), 0
	if end := in.first + int64(in.held); first >= in.first && first < end {
		kept = int(end - first)
		for _, samples := range in.block {
			copy(samples, samples[in.held-kept:in.held])
		}
	}

	in.held = 0 // if reading fails, the block is useless
	if err := in.fill(first, kept); err != nil {
		return fmt.Errorf("reading samples from frame %d: %w", max(0, first+int64(kept)), err)
	}
	in.first = first
	in.held = len(in.block[0])
	return nil
}

// fill reads the block that begins with the given first frame, and that already contains kept
// frames.
func (in *input) fill(first int64, kept int) error {
	size := len(in.block[0])
	for filled := kept; filled < size; {
		at := first + int64(filled)
		switch {
		case at < 0:
			filled = in.silence(filled, int(min(int64(size), -first)))
		case at >= in.frames:
			filled = in.silence(filled, size)
		default:
			n, err := in.readInto(filled, at)
			if err != nil {
				return err
			}
			filled += n
		}
	}
	return nil
}

// silence clears a part of the block, and returns its end.
func (in *input) silence(from, to int) int {
	for _, samples := range in.block {
		clear(samples[from:to])
	}
	return to
}

// readInto reads frames from the source, beginning with frame number at, and stores them from offset
// on in the block. It returns the number of frames, which is at least 1.
func (in *input) readInto(offset int, at int64) (int, error) {
	channels := len(in.block)
	wanted := int(min(int64(len(in.block[0])-offset), in.frames-at))
	n, err := in.src.ReadFrames(in.read[:wanted*channels], at)
	if n <= 0 {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	for ch, samples := range in.block {
		for i := range n {
			samples[offset+i] = float32(in.read[i*channels+ch])
		}
	}
	return n, nil
}
