package argon2

import "encoding/binary"

// A fill fills memory in passes of four slices. Each block is computed from the previous block and
// from another earlier one (RFC 9106, section 3.2).
type fill struct {
	passes uint32
	blocks []block

	// In the first half of the first pass, the choice of blocks does not depend on the password, so
	// that memory accesses reveal nothing. Choices are computed 128 at a time, from counter, which
	// is incremented each time.
	counter block
	choices block
}

// begin computes the first two blocks.
func (f *fill) begin(seed []byte) {
	for i := range uint32(2) {
		in := binary.LittleEndian.AppendUint32(seed[:len(seed):len(seed)], i)
		in = binary.LittleEndian.AppendUint32(in, 0) // the lane
		f.blocks[i].set(expand(in, 1024))
	}
}

// slice computes the blocks of a slice.
func (f *fill) slice(pass, slice uint32) {
	length := uint32(len(f.blocks)) / slices
	independent := pass == 0 && slice < slices/2
	if independent {
		f.counter = block{uint64(pass), 0, uint64(slice), uint64(len(f.blocks)), uint64(f.passes), variant}
	}

	begin := uint32(0)
	if pass == 0 && slice == 0 {
		begin = 2
		f.choose()
	}

	for i := begin; i < length; i++ {
		at := slice*length + i
		prev := at - 1
		if at == 0 {
			prev = uint32(len(f.blocks)) - 1
		}

		choice := f.blocks[prev][0]
		if independent {
			if i%128 == 0 {
				f.choose()
			}
			choice = f.choices[i%128]
		}
		compress(&f.blocks[at], &f.blocks[prev], &f.blocks[f.reference(pass, slice, i, choice)], pass > 0)
	}
}

// choose computes the next 128 choices (section 3.4.1.2).
func (f *fill) choose() {
	var zero block
	f.counter[6]++
	compress(&f.choices, &zero, &f.counter, false)
	first := f.choices
	compress(&f.choices, &zero, &first, false)
}

// reference returns the index of the block that choice selects among the complete blocks: those of
// the other slices, and those before index i of this slice, without the previous block (section
// 3.4.2).
func (f *fill) reference(pass, slice, i uint32, choice uint64) uint32 {
	length := uint32(len(f.blocks)) / slices
	start, complete := uint32(0), slice*length+i-1
	if pass > 0 {
		start = (slice + 1) % slices * length
		complete = (slices-1)*length + i - 1
	}

	// Squaring favors recent blocks.
	x := uint64(uint32(choice))
	x = x * x >> 32
	back := uint32(uint64(complete) * x >> 32)
	return (start + complete - 1 - back) % uint32(len(f.blocks))
}

// bytes returns the block as bytes, in the order of RFC 9106.
func (b *block) bytes() []byte {
	out := make([]byte, 0, 1024)
	for _, word := range b {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	return out
}

// set sets the block to 1024 bytes.
func (b *block) set(in []byte) {
	for i := range b {
		b[i] = binary.LittleEndian.Uint64(in[8*i:])
	}
}
