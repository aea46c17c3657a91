package opus

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// An index records where the segments begin in a file. It depends only on the file.
type index struct {
	start int64 // position of the first packet
	end   int64 // position of the end of the last packet
	step  int64 // number of segments between two marks
	marks []mark
}

// A mark is a page from which the decoder of a segment can start.
type mark struct {
	offset int64
	start  int64 // position at the end of the previous page
}

const (
	// maxMarks limits the marks of an index to 512 KiB. Up to 36 hours of audio have a mark for each segment.
	maxMarks = 32 << 10
	// maxBack is how many bytes a mark may go back to reach a page that begins with a whole packet.
	maxBack = 1 << 20
	// maxSpan is how many bytes may lie between two marks, or after the last mark. Reading from any
	// frame reads at most about twice as many bytes.
	maxSpan = 16 << 20
	// maxGranule limits positions, so that their sums do not overflow.
	maxGranule = 1 << 60
)

// frames returns the number of frames in the file.
func (x *index) frames(h head) int64 { return max(0, x.end-x.start-h.skip) }

// position returns the position of a frame that is played.
func (x *index) position(h head, frame int64) int64 { return x.start + h.skip + frame }

// lead returns the position at which the decoder of a segment starts.
func (x *index) lead(h head, segment int64) int64 {
	return x.position(h, segment*segmentFrames) - preroll
}

// markOf returns the mark of a segment.
func (x *index) markOf(segment int64) mark {
	last := int64(len(x.marks)) - 1
	return x.marks[min(segment/x.step, last)]
}

// scan computes the index of a file.
func scan(w *window, h head) (*index, error) {
	t := newTimeline(w, h)
	candidate, err := firstMark(t)
	if err != nil {
		return nil, err
	}

	x := &index{start: t.start, end: t.end, step: 1}
	for {
		p, err := t.nextPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if !p.continued || p.offset-candidate.offset > maxBack {
			x.addMark(h, candidate, x.end)
			candidate = mark{offset: p.offset, start: x.end}
		}
		x.end = t.end
	}

	x.addMark(h, candidate, x.end)
	if x.isSparse(w.size) {
		return nil, ErrSparse
	}
	return x, nil
}

// firstMark advances t to the first page in which a packet of audio ends. It returns a mark at the
// page after the headers, where that packet begins. Without audio, it returns the zero mark.
func firstMark(t *timeline) (mark, error) {
	var offset int64
	for {
		inHeaders := t.heads > 0
		p, err := t.nextPage()
		if errors.Is(err, io.EOF) {
			return mark{}, nil
		}
		if err != nil {
			return mark{}, err
		}
		if t.began {
			return mark{offset: offset, start: t.start}, nil
		}
		if inHeaders {
			offset = p.next
		}
	}
}

// addMark makes m the mark of each segment whose decoder starts before position end. It drops every
// other mark when there are too many.
func (x *index) addMark(h head, m mark, end int64) {
	for x.lead(h, int64(len(x.marks))*x.step) < end {
		x.marks = append(x.marks, m)
		if len(x.marks) < maxMarks {
			continue
		}
		for i := range maxMarks / 2 {
			x.marks[i] = x.marks[2*i]
		}
		x.marks = x.marks[:maxMarks/2]
		x.step *= 2
	}
}

// isSparse reports whether more than maxSpan bytes lie between two marks, or after the last mark.
// Long gaps in the audio can cause this, because most marks then lie in the gaps and few in the
// rest of the file.
func (x *index) isSparse(size int64) bool {
	for i, m := range x.marks {
		next := size
		if i+1 < len(x.marks) {
			next = x.marks[i+1].offset
		}
		if next-m.offset > maxSpan {
			return true
		}
	}
	return false
}

// A timeline is a walker that also computes the positions of packets.
type timeline struct {
	walker
	began bool  // a packet of audio has been read
	heads int   // number of header packets that have not been read
	start int64 // position of the page's first packet
	end   int64 // position of the end of the page
}

// newTimeline returns a timeline that begins at the start of the file.
func newTimeline(w *window, h head) *timeline {
	return &timeline{walker: walker{window: w, serial: h.serial}, heads: 2}
}

// restart goes to the page at m.
func (t *timeline) restart(m mark) {
	t.next = m.offset
	t.open = false
	t.packets = nil
	t.began = true
	t.heads = 0
	t.end = m.start
}

// nextPage advances to the next page, and removes the headers from its packets. The page's packets
// lie between the positions t.start and t.end. The last packet may be cut off at t.end.
func (t *timeline) nextPage() (page, error) {
	p, err := t.walker.nextPage()
	if err != nil {
		return p, err
	}
	for ; t.heads > 0 && len(t.packets) > 0; t.heads-- {
		t.packets = t.packets[1:]
	}
	previousEnd := t.end
	t.start = previousEnd
	if len(t.packets) == 0 {
		return p, nil
	}

	var frames int64
	for _, packet := range t.packets {
		frames += int64(duration(packet))
	}
	end := p.granule
	switch {
	case end < 0 || end > maxGranule: // the page does not contain its position
		end = previousEnd + frames
	case !t.began: // recording may have begun in the middle of a stream
		t.start = max(0, end-frames)
	default:
		t.start = max(previousEnd, end-frames)
	}
	t.began = true
	t.end = max(previousEnd, end)
	return p, nil
}

// The bytes of an index are a magic string, five numbers, a checksum, and the marks.
const (
	indexMagic = "selvage opus 1\n"
	indexHead  = len(indexMagic) + 5*8 + 4
	markSize   = 16
)

// marshal returns the index of a file of the given size as bytes.
func (x *index) marshal(size int64) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, indexHead+markSize*len(x.marks))
	b = append(b, indexMagic...)
	for _, n := range []int64{size, x.start, x.end, x.step, int64(len(x.marks))} {
		b = le.AppendUint64(b, uint64(n))
	}
	b = le.AppendUint32(b, 0) // the checksum
	for _, m := range x.marks {
		b = le.AppendUint64(b, uint64(m.offset))
		b = le.AppendUint64(b, uint64(m.start))
	}
	le.PutUint32(b[indexHead-4:], checksum(b))
	return b
}

// checksum returns the checksum of an index, which excludes the checksum itself.
func checksum(b []byte) uint32 {
	head := crc32.ChecksumIEEE(b[:indexHead-4])
	return crc32.Update(head, crc32.IEEETable, b[indexHead:])
}

// parseIndex parses an index. If the index is damaged or belongs to a file of a different size, ok
// is false.
func parseIndex(b []byte, size int64) (x *index, ok bool) {
	le := binary.LittleEndian
	if len(b) < indexHead || string(b[:len(indexMagic)]) != indexMagic {
		return nil, false
	}
	if le.Uint32(b[indexHead-4:]) != checksum(b) {
		return nil, false
	}

	var numbers [5]int64
	for i := range numbers {
		numbers[i] = int64(le.Uint64(b[len(indexMagic)+8*i:]))
	}
	indexedSize, marks := numbers[0], numbers[4]
	x = &index{start: numbers[1], end: numbers[2], step: numbers[3]}
	if indexedSize != size || x.step < 1 {
		return nil, false
	}
	if marks < 1 || marks*markSize != int64(len(b)-indexHead) {
		return nil, false
	}

	x.marks = make([]mark, marks)
	for i := range x.marks {
		encoded := b[indexHead+markSize*i:]
		x.marks[i] = mark{
			offset: int64(le.Uint64(encoded)),
			start:  int64(le.Uint64(encoded[8:])),
		}
	}
	return x, true
}
