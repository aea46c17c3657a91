package mp3

import (
	"encoding/binary"
	"hash/crc32"
)

// An index records where the decoders of segments begin in a file. It depends only on the file.
type index struct {
	frames int64 // number of frames in the file
	step   int64 // number of segments between two marks
	// Each mark is twice the position of a frame, plus 1 if earlier parts of the file contain bytes
	// that belong to no frame.
	marks []int64
}

const (
	// maxMarks limits the marks of an index to 512 KiB.
	maxMarks = 64 << 10
	// maxSpan is the maximum number of bytes between two marks, or after the last mark. No read has
	// to read more bytes than this.
	maxSpan = 16 << 20
)

// newIndex reads the headers of all frames.
func newIndex(m *scanner) (*index, error) {
	x := &index{step: 1}
	w := m.walk()
	for {
		found := w.next()
		if m.err != nil {
			return nil, m.err
		}
		if w.frameEnd-x.lastMarked(m) > maxSpan {
			return nil, ErrSparse
		}
		if !found {
			break
		}
		if x.frameOf(int64(len(x.marks))) == w.frames-1 {
			x.add(w)
		}
	}
	x.frames = w.frames
	return x, nil
}

// frameOf returns the number of the frame to which a mark leads.
func (x *index) frameOf(mark int64) int64 { return max(0, mark*x.step*segmentFrames-preroll) }

// lastMarked returns the position of the frame at the last mark.
func (x *index) lastMarked(m *scanner) int64 {
	if len(x.marks) == 0 {
		return m.start
	}
	return x.marks[len(x.marks)-1] >> 1
}

// add adds a mark at the current frame of w. It drops every other mark when there are too many.
func (x *index) add(w *walker) {
	mark := w.frameStart << 1
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
	x.marks = x.marks[:maxMarks/2]
	x.step *= 2
}

// walkerBefore returns a walker that begins at the last mark before a segment.
func (x *index) walkerBefore(m *scanner, segment int64) *walker {
	if len(x.marks) == 0 {
		return &walker{scanner: m, frameEnd: m.size}
	}
	number := min(segment/x.step, int64(len(x.marks)-1))
	mark := x.marks[number]
	return &walker{scanner: m, frameEnd: mark >> 1, frames: x.frameOf(number), junk: mark & 1}
}

// The bytes of an index are a magic string, four numbers, a checksum, and the marks.
const (
	indexMagic = "selvage mp3 1\n\n"
	indexHead  = len(indexMagic) + 4*8 + 4
)

// marshal returns the index of a file of the given size as bytes.
func (x *index) marshal(size int64) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, indexHead+8*len(x.marks))
	b = append(b, indexMagic...)
	for _, n := range []int64{size, x.frames, x.step, int64(len(x.marks))} {
		b = le.AppendUint64(b, uint64(n))
	}
	b = le.AppendUint32(b, 0) // the checksum
	for _, mark := range x.marks {
		b = le.AppendUint64(b, uint64(mark))
	}
	le.PutUint32(b[indexHead-4:], checksum(b))
	return b
}

// checksum returns the checksum of an index, which excludes the checksum itself.
func checksum(b []byte) uint32 {
	head := crc32.ChecksumIEEE(b[:indexHead-4])
	return crc32.Update(head, crc32.IEEETable, b[indexHead:])
}

// parseIndex parses an index. It returns nil if the index is damaged or belongs to a file of a
// different size.
func parseIndex(b []byte, size int64) *index {
	le := binary.LittleEndian
	if len(b) < indexHead || string(b[:len(indexMagic)]) != indexMagic {
		return nil
	}
	if le.Uint32(b[indexHead-4:]) != checksum(b) {
		return nil
	}

	var numbers [4]int64
	for i := range numbers {
		numbers[i] = int64(le.Uint64(b[len(indexMagic)+8*i:]))
	}
	indexedSize, marks := numbers[0], numbers[3]
	x := &index{frames: numbers[1], step: numbers[2]}
	if indexedSize != size || x.step < 1 || marks*8 != int64(len(b)-indexHead) {
		return nil
	}

	x.marks = make([]int64, marks)
	for i := range x.marks {
		x.marks[i] = int64(le.Uint64(b[indexHead+8*i:]))
	}
	return x
}
