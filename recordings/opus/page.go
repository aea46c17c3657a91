package opus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

const (
	pageHead = 27    // bytes in a page before its segment table
	maxPage  = 65307 // bytes in the largest page
	// maxPacket is the maximum length of a packet that is decoded. A packet of 120 ms has at most
	// 48 frames of 1275 bytes.
	maxPacket = 64 << 10
)

// A window reads a part of a file and keeps it.
type window struct {
	file   io.ReaderAt
	size   int64
	buf    []byte
	offset int64
}

func newWindow(r io.ReaderAt, size int64) *window {
	return &window{file: r, size: size, buf: make([]byte, 0, 2*maxPage)}
}

// held returns the bytes at offset that are in memory. The bytes are valid until the next call of
// read.
func (w *window) held(offset int64) []byte {
	if offset < w.offset || offset >= w.offset+int64(len(w.buf)) {
		return nil
	}
	return w.buf[offset-w.offset:]
}

// read reads the bytes at offset. It reads at least maxPage bytes, unless the file ends earlier.
func (w *window) read(offset int64) ([]byte, error) {
	length := max(0, min(int64(cap(w.buf)), w.size-offset))
	n, err := w.file.ReadAt(w.buf[:length], offset)
	w.buf, w.offset = w.buf[:n], offset
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, failed(err)
	}
	return w.buf, nil
}

// pageAt returns the bytes at offset. If a page begins there, it also returns the page.
func (w *window) pageAt(offset int64) (b []byte, p page, ok bool, err error) {
	b = w.held(offset)
	p, ok = parsePage(b, offset)
	mayContinue := len(b) < maxPage && w.offset+int64(len(w.buf)) < w.size
	if len(b) > 0 && (ok || !mayContinue) {
		return b, p, ok, nil
	}

	b, err = w.read(offset)
	if err != nil {
		return nil, page{}, false, err
	}
	p, ok = parsePage(b, offset)
	return b, p, ok, nil
}

// A page is a page of an Ogg file (RFC 3533, section 6).
type page struct {
	offset    int64
	next      int64 // offset of the next page
	serial    uint32
	granule   int64 // position at the end of the last packet that ends here, or -1
	continued bool  // the page begins with the rest of a packet
	body      int   // position of the first packet in the page
}

// parsePage parses the page at the start of b. offset is its position in the file.
func parsePage(b []byte, offset int64) (p page, ok bool) {
	if len(b) < pageHead || string(b[:5]) != "OggS\x00" {
		return p, false
	}
	p.body = pageHead + int(b[26])
	if len(b) < p.body {
		return p, false
	}

	length := p.body
	for _, n := range b[pageHead:p.body] {
		length += int(n)
	}
	p.offset = offset
	p.next = offset + int64(length)
	p.serial = binary.LittleEndian.Uint32(b[14:])
	p.granule = int64(binary.LittleEndian.Uint64(b[6:]))
	p.continued = b[5]&1 != 0
	return p, length <= len(b)
}

// A walker reads the pages of a stream in order, and assembles their packets.
type walker struct {
	window *window
	serial uint32
	next   int64  // offset of the next page
	part   []byte // beginning of a packet that continues on the next page
	open   bool   // part is the beginning of a packet, and not too long

	packets [][]byte // packets that end in the current page
}

// nextPage advances to the next page of the stream. At the end of the file, it returns io.EOF. It
// ignores an incomplete page, and skips bytes that are not pages.
func (w *walker) nextPage() (page, error) {
	for w.next < w.window.size {
		b, p, ok, err := w.window.pageAt(w.next)
		if err != nil {
			return page{}, err
		}
		switch {
		case len(b) == 0: // the file is shorter than w.window.size
			return page{}, io.EOF
		case !ok:
			w.next += skip(b)
		case p.serial != w.serial:
			w.next = p.next
		default:
			w.next = p.next
			w.split(b[:p.next-p.offset], p)
			return p, nil
		}
	}
	return page{}, io.EOF
}

// skip returns the offset in b, greater than 0, at which the next page may begin.
func skip(b []byte) int64 {
	if len(b) <= 5 {
		return int64(len(b))
	}
	if i := bytes.Index(b[1:], []byte("OggS\x00")); i >= 0 {
		return int64(i + 1)
	}
	return int64(len(b) - 4)
}

// split collects the packets that end in a page. The packets are valid until the next call of
// nextPage.
func (w *walker) split(b []byte, p page) {
	w.packets = w.packets[:0]
	rest := b[p.body:]
	inPart := p.continued // the current packet began on an earlier page
	if !p.continued {
		w.open = false
	}

	length := 0
	for _, n := range b[pageHead:p.body] {
		length += int(n)
		if n == 255 {
			continue
		}

		packet := rest[:length]
		rest, length = rest[length:], 0
		if !inPart {
			w.packets = append(w.packets, packet)
			continue
		}
		if w.open && len(w.part)+len(packet) <= maxPacket {
			w.part = append(w.part, packet...)
			w.packets = append(w.packets, w.part)
		}
		inPart, w.open = false, false
	}

	if length > 0 {
		w.keep(rest, inPart)
	}
}

// keep stores the part of a packet that is in this page. If follows is true, the packet began on an
// earlier page.
func (w *walker) keep(part []byte, follows bool) {
	if !follows {
		w.part = bytes.Clone(part) // packets may still contain the old part
		w.open = true
		return
	}
	w.open = w.open && len(w.part)+len(part) <= maxPacket
	if w.open {
		w.part = append(w.part, part...)
	}
}
