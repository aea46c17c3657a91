package mp3

import (
	"encoding/binary"
	"hash/crc32"
)

// An index records where the decoders of segments begin in a file. It depends only on the file.
type index struct {
	frames int64 // number of frames in the file
	step   int64 // number of segments between two marks
	marks  []int64
}

const (
	// maxMarks limits an index to 512 KiB.
	maxMarks = 64 << 10
	// maxSpan is the maximum number of bytes between two marks, or after the last mark. No read has
	// to read more bytes than this.
	maxSpan = 16 << 20
)

// newIndex reads the headers of all frames. Each mark is twice the position of a frame, plus 1 if
// earlier parts of the file contain bytes that belong to no frame.
func newIndex(m *scanner) (*index, error) {
	x := &index{step: 1}
	w := m.walk()
	for {
		before := w.after
		more := w.next()
		if span := w.after - x.last(m); span > maxSpan {
			return nil, ErrSparse
		}
		if !more {
			x.frames = w.frames
			return x, m.err
		}
		if x.first(int64(len(x.marks))) == w.frames-1 {
			x.add(before, w)
		}
	}
}

// first returns the number of the frame to which a mark leads.
func (x *index) first(mark int64) int64 { return max(0, mark*x.step*segment-preroll) }

// last returns the position of the last mark.
func (x *index) last(m *scanner) int64 {
	if len(x.marks) == 0 {
		return m.start
	}
	return x.marks[len(x.marks)-1] >> 1
}

// add adds a mark at the current frame of w.
func (x *index) add(before int64, w *walker) {
	mark := w.at << 1
	if w.junk > 0 {
		mark |= 1
	}
	x.marks = append(x.marks, mark)
	if len(x.marks) < maxMarks {
		return
	}
	for i := range maxMarks / 2 {
		x.marks[i] = x.marks[2*i]
	}
	x.marks, x.step = x.marks[:maxMarks/2], 2*x.step
}

// walk returns a walker for the frames before a segment.
func (x *index) walk(m *scanner, segment int64) *walker {
	if len(x.marks) == 0 {
		return &walker{scanner: m, after: m.size}
	}
	number := min(segment/x.step, int64(len(x.marks)-1))
	mark := x.marks[number]
	return &walker{scanner: m, after: mark >> 1, frames: x.first(number), junk: mark & 1}
}

// The bytes of an index are a magic string, four numbers, a checksum, and the marks.
const (
	indexMagic = "selvage mp3 1\n\n"
	indexHead  = len(indexMagic) + 4*8 + 4
)

// marshal returns the index of a file of the given size as bytes.
func (x *index) marshal(size int64) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, indexHead+8*len(x.marks)), indexMagic...)
	for _, n := range []int64{size, x.frames, x.step, int64(len(x.marks))} {
		b = le.AppendUint64(b, uint64(n))
	}
	b = le.AppendUint32(b, 0)
	for _, m := range x.marks {
		b = le.AppendUint64(b, uint64(m))
	}
	le.PutUint32(b[indexHead-4:], sum(b))
	return b
}

// sum returns the checksum of an index.
func sum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[:indexHead-4]), crc32.IEEETable, b[indexHead:])
}

// parseIndex parses an index. It returns nil if the index is damaged or belongs to a file of a
// different size.
func parseIndex(b []byte, size int64) *index {
	le := binary.LittleEndian
	if len(b) < indexHead || string(b[:len(indexMagic)]) != indexMagic || le.Uint32(b[indexHead-4:]) != sum(b) {
		return nil
	}
	var n [4]int64
	for i := range n {
		n[i] = int64(le.Uint64(b[len(indexMagic)+8*i:]))
	}
	if n[0] != size || n[2] < 1 || n[3]*8 != int64(len(b)-indexHead) {
		return nil
	}

	x := &index{frames: n[1], step: n[2], marks: make([]int64, n[3])}
	for i := range x.marks {
		x.marks[i] = int64(le.Uint64(b[indexHead+8*i:]))
	}
	return x
}
