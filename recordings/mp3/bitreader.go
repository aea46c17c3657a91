package mp3

import "encoding/binary"

// A bitReader reads bits, most significant bit first. After the end, it reads zeros.
type bitReader struct {
	buf []byte // with bitPadding more bytes than at may reach
	at  int    // position in bits
}

// bitPadding is the number of bytes after the last byte that a bitReader may access. No decoding
// step reads more than this many bytes without a check.
const bitPadding = 32

// peek returns the next 32 bits.
func (r *bitReader) peek() uint32 {
	return uint32(binary.BigEndian.Uint64(r.buf[r.at>>3:]) << (r.at & 7) >> 32)
}

// take returns the next n bits, at most 31.
func (r *bitReader) take(n int) int {
	v := r.peek() >> 1 >> (31 - n)
	r.at += n
	return int(v)
}

// flag returns the next bit.
func (r *bitReader) flag() bool { return r.take(1) == 1 }
