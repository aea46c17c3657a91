package mp3

import "encoding/binary"

// A tag describes the whole stream. Encoders write it into the first frame.
type tag struct {
	there   bool
	frames  int64 // number of frames after the tag
	bytes   int64 // length of the stream, including the tag
	delay   int64 // samples that the encoder added at the start
	padding int64 // samples that it added at the end
}

// covers reports whether the stream still has the length in the tag. The tag's number of frames
// must also fit into this length.
func (t tag) covers(bytes int64) bool {
	return t.there && t.bytes == bytes && t.frames > 0 && t.frames <= bytes/shortest
}

// readTag parses a tag that was written by Xing or LAME.
func (m *scanner) readTag() (t tag) {
	b := m.read(m.start, min(m.first.length, 200))
	head := 4 + m.first.sideInfo()
	if len(b) < head+8 {
		return t
	}
	if magic := string(b[head : head+4]); magic != "Xing" && magic != "Info" {
		return t
	}
	t.there = true

	fields := binary.BigEndian.Uint32(b[head+4:])
	b = b[head+8:]
	for _, field := range []struct {
		bit    uint32
		length int
		value  *int64 // nil if the field is skipped
	}{
		{bit: 1, length: 4, value: &t.frames},
		{bit: 2, length: 4, value: &t.bytes},
		{bit: 4, length: 100},
		{bit: 8, length: 4},
	} {
		if fields&field.bit == 0 || len(b) < field.length {
			continue
		}
		if field.value != nil {
			*field.value = int64(binary.BigEndian.Uint32(b))
		}
		b = b[field.length:]
	}

	if len(b) >= 24 && (string(b[:4]) == "LAME" || string(b[:3]) == "Lav") {
		both := binary.BigEndian.Uint32(b[20:]) // twelve bits each, after another field of one byte
		t.delay = int64(both >> 12 & 0xFFF)
		t.padding = int64(both & 0xFFF)
	}
	return t
}
