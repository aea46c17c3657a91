package mp3

// A bitWriter writes bits into a frame, most significant bit first.
type bitWriter struct {
	buf  []byte
	at   int
	acc  uint64 // bits not yet in buf, left-aligned
	free int    // number of unused bits in acc
}

func newBitWriter(buf []byte) bitWriter { return bitWriter{buf: buf, free: 64} }

// put writes the n lowest bits of v. n is at most 32, and the other bits of v must be 0.
func (w *bitWriter) put(v uint32, n int) {
	w.free -= n
	w.acc |= uint64(v) << w.free
	if w.free < 32 {
		b := w.buf[w.at : w.at+4]
		b[0], b[1] = byte(w.acc>>56), byte(w.acc>>48)
		b[2], b[3] = byte(w.acc>>40), byte(w.acc>>32)
		w.at += 4
		w.acc <<= 32
		w.free += 32
	}
}

// end writes the remaining bits, and fills the rest of the frame with zeros.
func (w *bitWriter) end() {
	for ; w.free < 64; w.free += 8 {
		w.buf[w.at] = byte(w.acc >> 56)
		w.acc <<= 8
		w.at++
	}
	clear(w.buf[w.at:])
}
