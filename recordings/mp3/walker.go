package mp3

import "bytes"

// A walker visits the frames of a file, except the frame that only contains the tag.
type walker struct {
	*scanner
	frame      header
	frameStart int64
	frameEnd   int64
	frames     int64 // number of frames visited
	junk       int64 // number of bytes between the frames visited
	skip       bool  // the next frame holds the tag
}

// walk returns a walker that begins at the first frame.
func (m *scanner) walk() *walker {
	return &walker{scanner: m, frameEnd: m.start, skip: m.tag.there}
}

// next goes to the next frame. It returns false at the end of the file, or after too many bytes
// between frames.
func (w *walker) next() bool {
	at := w.frameEnd
	for at < w.size && w.junk <= w.size/junkShare {
		f, ok := w.frameAt(at)
		if !ok {
			next := w.sync(at + 1)
			w.junk += next - at
			at = next
			continue
		}
		end := at + int64(f.length)
		if w.skip {
			w.skip = false
			at = end
			continue
		}

		w.frame, w.frameStart, w.frameEnd = f, at, end
		if end > w.size { // the file is truncated
			return false
		}
		w.frames++
		return true
	}
	w.frameEnd = w.size
	return false
}

// frameAt returns the header of the frame at a position, if it belongs to the stream. In a file with
// junk, another frame must follow, because junk may look like a header.
func (w *walker) frameAt(at int64) (f header, ok bool) {
	f, ok = w.header(at)
	if !ok || !f.like(w.first) {
		return header{}, false
	}
	isLast := at+int64(f.length) >= w.size
	return f, w.junk == 0 || isLast || w.chains(f, at, 2)
}

// sync returns the first position, from at on, where a frame may begin. If there is no such
// position, it returns the size of the file.
func (m *scanner) sync(at int64) int64 {
	for at < m.size {
		b := m.read(at, int(min(m.size-at, 512)))
		if len(b) == 0 {
			return m.size
		}
		if i := bytes.IndexByte(b, 0xFF); i >= 0 {
			return at + int64(i)
		}
		at += int64(len(b))
	}
	return m.size
}
