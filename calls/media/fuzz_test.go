package media

import (
	"bytes"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzDatagram looks for packets from unknown senders that break the engine.
func FuzzDatagram(f *testing.F) {
	p := newPair(f, calls.Audio, 7)
	for _, b := range p.packets(f, 2, 20) {
		f.Add(b, true)
		f.Add(b, false)
	}

	f.Add([]byte{22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}, true)
	f.Add(append([]byte{0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42}, make([]byte, 20)...), false)
	f.Add([]byte{0x80, 200, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, true)
	bound := fuzzcost.Bound{CPU: time.Millisecond, CPUPerByte: time.Microsecond, Heap: 64 << 10, PerByte: 64}
	f.Fuzz(func(t *testing.T, b []byte, proven bool) {
		from := p.source
		if !proven {
			from = p.engine.advertise[0]
		}
		if len(b) < maxPacket {
			bound.Check(t, len(b), func() { p.worker.receiveDatagram(b, from, time.Now()) })
		}
	})
}

// FuzzPacket looks for decrypted packets that break the code that rewrites them. Clients control
// the content of these packets.
func FuzzPacket(f *testing.F) {
	f.Add([]byte("\x90\x6f\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\xbe\xde\x00\x01\x10\x1e\x00\x00\x90\x80\x01\x00"))
	f.Add([]byte("\xb0\x6f\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01" +
		"\x10\x00\x00\x01\x10\x1e\x00\x00\x78\x00\x01\x67\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parse(b)
		if !ok {
			return
		}

		payload := bytes.Clone(b[p.offset:p.end])
		ids := [16]uint8{1: 3, 2: 1}
		if loudness := rewriteExtensions(b, p, &ids, 1); loudness > silence {
			t.Errorf("the audio level is %d, want at most %d", loudness, silence)
		}
		if !bytes.Equal(b[p.offset:p.end], payload) {
			t.Error("the payload was changed")
		}

		for _, codec := range []string{sdp.VP8, sdp.H264} {
			startsKeyframe(codec, payload)
		}
	})
}
