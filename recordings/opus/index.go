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
	from   int64 // position at the end of the previous page
}

const (
	// maxMarks limits an index to 512 KiB. Up to 36 hours of audio have a mark for each segment.
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

// lead returns the position at which the decoder of a segment starts.
func (x *index) lead(h head, segmentNumber int64) int64 {
	return x.start + h.skip + segmentNumber*segment - preroll
}

// scan computes the index of a file.
func scan(w *window, h head) (*index, error) {
	t := newTimeline(w, h)
	x := &index{step: 1}
	var candidate mark
	var audio int64 // offset of the page after the headers

	for began := false; ; {
		before, heads := t.at, t.heads
		p, err := t.page()

		switch {
		case errors.Is(err, io.EOF):
			x.mark(h, candidate, x.end)
			if x.isSparse(w.size) {
				return nil, ErrSparse
			}
			return x, nil
		case err != nil:
			return nil, err
		case !t.began && heads > 0:
			audio = p.next
			continue
		case !t.began: // the first packet ends on a later page
			continue
		case !began:
			began = true
			x.start, candidate = t.from, mark{audio, t.from}
		case !p.goesOn || p.offset-candidate.offset > maxBack:
			x.mark(h, candidate, before)
			candidate = mark{p.offset, before}
		}
		x.end = t.at
	}
}

// mark makes m the mark of each segment whose decoder starts before position end.
func (x *index) mark(h head, m mark, end int64) {
	for x.lead(h, int64(len(x.marks))*x.step) < end {
		x.marks = append(x.marks, m)
		if len(x.marks) < maxMarks {
			continue
		}
		for i := range maxMarks / 2 {
			x.marks[i] = x.marks[2*i]
		}
		x.marks, x.step = x.marks[:maxMarks/2], 2*x.step
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
	began  bool  // a packet of audio has been read
	heads  int   // header packets that have not been read
	from   int64 // position of the page's first packet
	at     int64 // position of the end of the page
	frames int64 // number of frames in the packets of the page
}

// newTimeline returns a timeline that begins at the start of the file.
func newTimeline(w *window, h head) *timeline {
	return &timeline{walker: walker{window: w, serial: h.serial}, heads: 2}
}

// restart goes to the page at m.
func (t *timeline) restart(m mark) {
	t.next, t.open = m.offset, false
	t.began, t.at, t.heads = true, m.from, 0
	t.packets = nil
}

// page advances to the next page, and removes the headers from its packets. The page's packets lie
// between the positions t.from and t.at. The last packet may be cut off at t.at.
func (t *timeline) page() (page, error) {
	p, err := t.walker.page()
	if err != nil {
		return p, err
	}
	for ; t.heads > 0 && len(t.packets) > 0; t.heads-- {
		t.packets = t.packets[1:]
	}

	t.frames = 0
	for _, packet := range t.packets {
		t.frames += int64(duration(packet))
	}
	t.from = t.at
	if len(t.packets) == 0 {
		return p, nil
	}

	end := p.granule
	switch {
	case end < 0 || end > maxGranule: // the page does not contain its position
		end = t.at + t.frames
	case !t.began: // recording may have begun in the middle of a stream
		t.from = max(0, end-t.frames)
	default:
		t.from = max(t.at, end-t.frames)
	}
	t.began, t.at = true, max(t.at, end)
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
	b := append(make([]byte, 0, indexHead+markSize*len(x.marks)), indexMagic...)
	for _, n := range []int64{size, x.start, x.end, x.step, int64(len(x.marks))} {
		b = le.AppendUint64(b, uint64(n))
	}
	b = le.AppendUint32(b, 0)
	for _, m := range x.marks {
		b = le.AppendUint64(b, uint64(m.offset))
		b = le.AppendUint64(b, uint64(m.from))
	}
	le.PutUint32(b[indexHead-4:], sum(b))
	return b
}

// sum returns the checksum of an index.
func sum(b []byte) uint32 {
	s := crc32.ChecksumIEEE(b[:indexHead-4])
	return crc32.Update(s, crc32.IEEETable, b[indexHead:])
}

// parseIndex parses an index. If the index is damaged or belongs to a file of a different size, ok
// is false.
func parseIndex(b []byte, size int64) (x *index, ok bool) {
	le := binary.LittleEndian
	if len(b) < indexHead || string(b[:len(indexMagic)]) != indexMagic || le.Uint32(b[indexHead-4:]) != sum(b) {
		return nil, false
	}
	var n [5]int64
	for i := range n {
		n[i] = int64(le.Uint64(b[len(indexMagic)+8*i:]))
	}
	if n[0] != size || n[3] < 1 || n[4] < 1 || n[4]*markSize != int64(len(b)-indexHead) {
		return nil, false
	}

	x = &index{start: n[1], end: n[2], step: n[3], marks: make([]mark, n[4])}
	for i := range x.marks {
		at := b[indexHead+markSize*i:]
		x.marks[i] = mark{int64(le.Uint64(at)), int64(le.Uint64(at[8:]))}
	}
	return x, true
}
