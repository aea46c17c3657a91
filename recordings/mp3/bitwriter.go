package mp3

// A bitWriter puts bits into a frame, the highest first.
type bitWriter struct {
	buf  []byte
	at   int
	acc  uint64 // what is not in buf yet, to the left
	free int    // bits of acc
}

func newBitWriter(buf []byte) bitWriter { return bitWriter{buf: buf, free: 64} }

// put writes the n lowest bits of v, which has no others; n is at most 32.
func (w *bitWriter) put(v uint32, n int) {
	w.free -= n
	w.acc |= uint64(v) << w.free
	if w.free < 32 {
		b := w.buf[w.at : w.at+4]
		b[0], b[1], b[2], b[3] = byte(w.acc>>56), byte(w.acc>>48), byte(w.acc>>40), byte(w.acc>>32)
		w.at += 4
		w.acc <<= 32
		w.free += 32
	}
}

// end writes what is left, and zeros to the end of the frame.
func (w *bitWriter) end() {
	for ; w.free < 64; w.free += 8 {
		w.buf[w.at] = byte(w.acc >> 56)
		w.acc <<= 8
		w.at++
	}
	clear(w.buf[w.at:])
}
