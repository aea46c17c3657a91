package audio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/selvage/selvage/recordings/wav"
)

const (
	// mp3Junk is the maximum number of bytes before the first frame, not counting tags.
	mp3Junk = 4 << 10
	// mp3Chain is the number of consecutive frames that identify an MP3.
	mp3Chain = 4
	// mp3MaxJunk limits the bytes between frames to 1/4 of the file.
	mp3MaxJunk = 4
	// mp3Shortest is the length of the shortest frame, which has 8 kbit/s at 24 kHz.
	mp3Shortest = 24
	// mp3Window is the number of bytes read at a time.
	mp3Window = 64 << 10
)

// An mp3 is an MPEG audio layer III file that is being parsed.
type mp3 struct {
	file io.ReaderAt
	size int64 // size without the tags at the end

	offset int64 // position of window in the file
	window []byte
	err    error // error from reading; after it, at returns nil
}

// parseMP3 reads the facts of an MP3. ok is false if the file is not an MP3, because it lacks
// several consecutive frames. The frames must be at the start or, if search is set, near it.
func parseMP3(r io.ReaderAt, size int64, search bool) (f wav.Facts, ok bool, err error) {
	m := &mp3{file: r, size: size, window: make([]byte, 0, mp3Window)}
	m.dropTail()
	start := m.skipID3()

	first, at := m.findFrame(start, search)
	if m.err != nil || first.length == 0 {
		return f, false, m.err
	}
	f.Codec, f.SampleRate, f.Channels = "mp3", first.rate, first.channels
	f.Offset, f.Length = at, m.size-at

	// The tag contains the number of frames. It is wrong if the file was cut or changed later.
	tag := m.tag(first, at)
	frames := tag.frames
	if !tag.covers(f.Length) {
		var junk int64
		frames, junk = m.count(first, at)
		if junk > m.size/mp3MaxJunk {
			return wav.Facts{}, false, m.err
		}
		if junk > 0 {
			f.Repairs = append(f.Repairs, fmt.Sprintf("%d bytes between the frames are not MP3", junk))
		}
		if tag.there {
			frames--
		}
	}

	f.Frames = max(0, frames*int64(first.samples)-tag.unplayed)
	return f, true, m.err
}

// at returns the n bytes at offset, or nil if the file has fewer.
func (m *mp3) at(offset int64, n int) []byte {
	if m.err != nil || offset < 0 || offset+int64(n) > m.size {
		return nil
	}
	if offset < m.offset || offset+int64(n) > m.offset+int64(len(m.window)) {
		m.offset = offset
		m.window, m.err = read(m.file, m.window[:min(mp3Window, m.size-offset)], offset)
	}
	if len(m.window) < n { // an error occurred, or the file is shorter than its size
		return nil
	}
	return m.window[offset-m.offset:][:n]
}

// dropTail excludes an ID3v1 tag and an APE tag before it from m.size.
func (m *mp3) dropTail() {
	if b := m.at(m.size-128, 128); bytes.HasPrefix(b, []byte("TAG")) {
		m.size -= 128
	}
	if b := m.at(m.size-32, 32); bytes.HasPrefix(b, []byte("APETAGEX")) {
		length := int64(binary.LittleEndian.Uint32(b[12:]))
		if binary.LittleEndian.Uint32(b[20:])&(1<<31) != 0 {
			length += 32 // its head
		}
		if length <= m.size {
			m.size -= length
		}
	}
}

// skipID3 returns the position after the ID3v2 tags at the start. It ignores a tag that exceeds the
// file.
func (m *mp3) skipID3() (at int64) {
	for range 4 {
		b := m.at(at, 10)
		if !bytes.HasPrefix(b, []byte("ID3")) || (b[6]|b[7]|b[8]|b[9])&0x80 != 0 {
			break
		}

		length := 10 + (int64(b[6])<<21 | int64(b[7])<<14 | int64(b[8])<<7 | int64(b[9]))
		if b[5]&0x10 != 0 {
			length += 10 // its foot
		}

		if at+length > m.size {
			break
		}
		at += length
	}
	return at
}

// findFrame returns the first frame that is followed by others, and its position.
func (m *mp3) findFrame(start int64, search bool) (mp3Frame, int64) {
	end := start
	if search {
		end += mp3Junk
	}
	for at := start; at <= end; at++ {
		if f, ok := m.frame(at); ok && m.chains(f, at, mp3Chain) {
			return f, at
		}
	}
	return mp3Frame{}, 0
}

// chains reports whether a frame begins a chain of n similar frames. If the file ends after the
// last of these, two frames are enough.
func (m *mp3) chains(f mp3Frame, at int64, n int) bool {
	next := f
	for i := 1; i < n; i++ {
		at += int64(next.length)
		if at == m.size && i >= 2 {
			return true
		}
		var ok bool
		next, ok = m.frame(at)
		if !ok || !next.like(f) {
			return false
		}
	}
	return true
}

// count counts the frames from the first one on, and the bytes between frames. It stops when there
// are too many such bytes.
func (m *mp3) count(first mp3Frame, at int64) (frames, junk int64) {
	for at < m.size && junk <= m.size/mp3MaxJunk {
		f, ok := m.frame(at)
		if ok && f.like(first) && (at+int64(f.length) >= m.size || junk == 0 || m.chains(f, at, 2)) {
			at += int64(f.length)
			if at <= m.size {
				frames++
			}
			continue
		}
		next := m.sync(at + 1)
		at, junk = next, junk+next-at
	}
	return frames, junk
}

// sync returns the next position, starting with at, where a frame may begin.
func (m *mp3) sync(at int64) int64 {
	for at < m.size {
		b := m.at(at, int(min(m.size-at, 512)))
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

// An mp3Frame holds the facts in a frame's header.
type mp3Frame struct {
	length   int // in bytes
	samples  int // per channel
	rate     int
	channels int
}

// like reports whether two frames can belong to the same stream.
func (f mp3Frame) like(other mp3Frame) bool {
	return f.rate == other.rate && f.samples == other.samples
}

// mp3Rates holds the bit rates of layer III in kbit/s: those of MPEG-1, then those for lower sample
// rates.
var mp3Rates = [2][16]int{
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

// frame parses a frame's header (ISO 11172-3, section 2.4.2.3).
func (m *mp3) frame(at int64) (f mp3Frame, ok bool) {
	b := m.at(at, 4)
	if len(b) < 4 || b[0] != 0xFF || b[1]&0xE6 != 0xE2 { // sync word and layer III
		return f, false
	}

	version, low := b[1]>>3&3, 1 // 0: MPEG-2.5, 2: MPEG-2, 3: MPEG-1
	f.rate = [4]int{44100, 48000, 32000, 0}[b[2]>>2&3]
	switch f.samples = 576; version {
	case 0:
		f.rate /= 4
	case 2:
		f.rate /= 2
	case 3:
		f.samples, low = 1152, 0
	}

	bits := mp3Rates[low][b[2]>>4]
	if version == 1 || f.rate == 0 || bits == 0 || b[3]&3 == 2 {
		return f, false
	}

	f.length = f.samples/8*bits*1000/f.rate + int(b[2]>>1&1)
	f.channels = 2
	if b[3]>>6 == 3 {
		f.channels = 1
	}
	return f, true
}

// An mp3Tag describes the whole stream. Encoders write it into the first frame.
type mp3Tag struct {
	there    bool
	frames   int64 // frames after the tag
	bytes    int64 // length of the stream, including the tag
	unplayed int64 // samples added at the start and the end
}

// covers reports whether the stream still has the length in the tag, and whether that length can
// hold the number of frames in it.
func (t mp3Tag) covers(bytes int64) bool {
	return t.there && t.bytes == bytes && t.frames > 0 && t.frames <= bytes/mp3Shortest
}

// tag parses a tag written by Xing or LAME.
func (m *mp3) tag(f mp3Frame, at int64) (t mp3Tag) {
	b := m.at(at, min(f.length, 200))
	side := 4 + 32 // bytes before the tag: header and side information
	if f.samples == 576 {
		side = 4 + 17
	}
	if f.channels == 1 {
		side = 4 + map[int]int{1152: 17, 576: 9}[f.samples]
	}

	if len(b) < side+8 || string(b[side:side+4]) != "Xing" && string(b[side:side+4]) != "Info" {
		return t
	}
	t.there = true

	fields := binary.BigEndian.Uint32(b[side+4:])
	b = b[side+8:]
	for _, field := range []struct {
		bit   uint32
		bytes int
		to    *int64
	}{{1, 4, &t.frames}, {2, 4, &t.bytes}, {4, 100, nil}, {8, 4, nil}} {
		if fields&field.bit == 0 || len(b) < field.bytes {
			continue
		}
		if field.to != nil {
			*field.to = int64(binary.BigEndian.Uint32(b))
		}
		b = b[field.bytes:]
	}

	if len(b) >= 24 && (string(b[:4]) == "LAME" || string(b[:3]) == "Lav") {
		both := binary.BigEndian.Uint32(b[20:]) // twelve bits each, after another field of one byte
		t.unplayed = int64(both>>12&0xFFF) + int64(both&0xFFF)
	}
	return t
}
