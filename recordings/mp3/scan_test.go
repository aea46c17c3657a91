package mp3

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// TestTagsThatOverlap shows that Open decodes exactly the frames that Scan counted. In this file,
// the tag at the start contains frames, and two tags follow the audio. Scan removes only the last
// of them. The other one claims to reach into the tag at the start. If Open removed it, too, the
// tag at the start would no longer fit into the file, and its frames would count as audio.
func TestTagsThatOverlap(t *testing.T) {
	frame := "\xff\xf3\x14\xc0" + strings.Repeat("\x00", shortest-4)
	const inTag, played = 100, 10
	apeTag := func(length int) string {
		b := make([]byte, 32)
		copy(b, "APETAGEX")
		binary.LittleEndian.PutUint32(b[12:], uint32(length))
		return string(b)
	}
	const body = inTag * shortest
	file := "ID3\x03\x00\x00\x00\x00" + string([]byte{body >> 7, body & 127}) + strings.Repeat(frame, inTag+played) +
		apeTag(32+(played+1)*shortest) + apeTag(32)

	r := bytes.NewReader([]byte(file))
	facts, ok, err := Scan(r, r.Size(), true)
	if !ok || err != nil || facts.Frames != played*576 {
		t.Fatalf("Scan = %+v, %t, %v, want %d frames", facts, ok, err, played*576)
	}
	f, err := Open(r, facts.Offset+facts.Length, nil)
	if err != nil || f.Frames() != facts.Frames {
		t.Errorf("Open = %d frames, %v, want %d", f.Frames(), err, facts.Frames)
	}
}
