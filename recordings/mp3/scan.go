package mp3

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// maxLead is the maximum number of bytes before the first frame, not counting tags.
	maxLead = 4 << 10
	// chainLength is the number of consecutive frames that identify an MP3.
	chainLength = 4
	// junkShare limits the bytes between frames to 1/4 of the file.
	junkShare = 4
	// shortest is the length of the shortest frame, which has 8 kbit/s at 24 kHz.
	shortest = 24
	// windowSize is the number of bytes read at a time.
	windowSize = 64 << 10
)

// Facts describes a file.
type Facts struct {
	Rate     int
	Channels int
	Frames   int64 // samples of each channel that are played
	Offset   int64 // position of the first frame
	Length   int64 // number of bytes from Offset to the tags at the end
	Claimed  int64 // Frames according to a tag that fits the length of the file but is wrong
	Junk     int64 // number of bytes between the frames
}

// Scan returns the facts of a file of the given size. ok is false if the file is not an MP3. An MP3
// has several consecutive frames at the start or, if search is set, near the start.
func Scan(r io.ReaderAt, size int64, search bool) (f Facts, ok bool, err error) {
	m := newScanner(r, size)
	m.dropTail()
	if !m.begin(search) {
		return f, false, m.err
	}
	f = Facts{
		Rate:     m.first.rate,
		Channels: m.first.channels,
		Offset:   m.start,
		Length:   m.size - m.start,
	}

	// The tag contains the number of frames. The frames are still counted, because the price
	// depends on their number, and the tag may be wrong.
	w := m.walk()
	for w.next() {
	}
	if w.junk > m.size/junkShare {
		return Facts{}, false, m.err
	}

	f.Frames = m.played(w.frames)
	f.Junk = w.junk
	if m.tag.covers(f.Length) && m.tag.frames != w.frames {
		f.Claimed = m.played(m.tag.frames)
	}
	return f, true, m.err
}

// End returns the position at which the frames of an MP3 of the given size end. Tags may follow it.
func End(r io.ReaderAt, size int64) (int64, error) {
	m := newScanner(r, size)
	m.dropTail()
	return m.size, m.err
}

// played returns how many samples of each channel are played from the given number of frames.
func (m *scanner) played(frames int64) int64 {
	return max(0, frames*int64(m.first.samples())-m.tag.delay-m.tag.padding)
}

// A scanner reads a file.
type scanner struct {
	file  io.ReaderAt
	size  int64 // size without the tags at the end
	first header
	start int64 // position of the first frame
	tag   tag

	offset int64 // position of window in the file
	window []byte
	err    error // error from reading; after it, read returns nil
}

func newScanner(r io.ReaderAt, size int64) *scanner {
	return &scanner{file: r, size: size, window: make([]byte, 0, windowSize)}
}

// begin finds the first frame. It returns false if the file is not an MP3 or cannot be read.
func (m *scanner) begin(search bool) bool {
	m.first, m.start = m.findFrame(m.skipID3(), search)
	if m.err != nil || m.first.length == 0 {
		return false
	}
	m.tag = m.readTag()
	return m.err == nil
}

// read returns the n bytes at offset. If the file has fewer or cannot be read, it returns nil.
func (m *scanner) read(offset int64, n int) []byte {
	if m.err != nil || offset < 0 || offset+int64(n) > m.size {
		return nil
	}
	if offset < m.offset || offset+int64(n) > m.offset+int64(len(m.window)) {
		m.offset = offset
		window := m.window[:min(windowSize, m.size-offset)]
		have, err := m.file.ReadAt(window, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			m.err = fmt.Errorf("reading MP3: %w", err)
		}
		m.window = window[:have]
	}
	if len(m.window) < n { // reading failed, or the file is shorter than m.size
		return nil
	}
	return m.window[offset-m.offset:][:n]
}

// dropTail excludes an ID3v1 tag, and an APE tag before it, from m.size.
func (m *scanner) dropTail() {
	if b := m.read(m.size-128, 128); bytes.HasPrefix(b, []byte("TAG")) {
		m.size -= 128
	}
	if b := m.read(m.size-32, 32); bytes.HasPrefix(b, []byte("APETAGEX")) {
		length := int64(binary.LittleEndian.Uint32(b[12:]))
		if binary.LittleEndian.Uint32(b[20:])&(1<<31) != 0 {
			length += 32 // the header of the tag
		}
		if length <= m.size {
			m.size -= length
		}
	}
}

// skipID3 returns the position after the ID3v2 tags at the start. It ignores a tag that
// extends past the end of the file.
func (m *scanner) skipID3() int64 {
	var at int64
	for range 4 {
		b := m.read(at, 10)
		if !bytes.HasPrefix(b, []byte("ID3")) || (b[6]|b[7]|b[8]|b[9])&0x80 != 0 {
			break
		}

		length := 10 + (int64(b[6])<<21 | int64(b[7])<<14 | int64(b[8])<<7 | int64(b[9]))
		if b[5]&0x10 != 0 {
			length += 10 // the footer of the tag
		}

		if at+length > m.size {
			break
		}
		at += length
	}
	return at
}

// findFrame returns the first frame that similar frames follow, and its position. If there is no
// such frame, the header is zero.
func (m *scanner) findFrame(start int64, search bool) (header, int64) {
	end := start
	if search {
		end += maxLead
	}
	for at := start; at <= end; at++ {
		if f, ok := m.header(at); ok && m.chains(f, at, chainLength) {
			return f, at
		}
	}
	return header{}, 0
}

// chains reports whether a frame begins a chain of n similar frames. If the file ends after the
// last of these frames, two frames are enough.
func (m *scanner) chains(f header, at int64, n int) bool {
	next := f
	for i := 1; i < n; i++ {
		at += int64(next.length)
		if at == m.size && i >= 2 {
			return true
		}
		var ok bool
		next, ok = m.header(at)
		if !ok || !next.like(f) {
			return false
		}
	}
	return true
}

// header returns the header of the frame at a position.
func (m *scanner) header(at int64) (header, bool) { return parseHeader(m.read(at, 4)) }
