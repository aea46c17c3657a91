package media

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/selvage/selvage/calls"
)

// receiveRTP handles an SRTP packet from a client whose address has been verified: it decrypts the
// packet, passes it to the recording and forwards it to the linked leg.
func (w *worker) receiveRTP(t *transport, b []byte, now time.Time) {
	s := t.section
	loudness, ok := w.forward(t, b, now)
	if !ok {
		w.engine.counters.dropped.Add(1)
		return
	}
	t.lastHeard.Store(stamp(now))
	w.engine.counters.received.Add(1)
	w.engine.counters.receivedBytes.Add(uint64(len(b)))
	if s.kind == calls.Audio {
		s.leg.reporter.countLevel(loudness, now)
	}
}

// decryptRTP decrypts an RTP packet. The caller holds in.mu.
func (w *worker) decryptRTP(t *transport, b []byte, now time.Time) ([]byte, bool) {
	ssrc := binary.BigEndian.Uint32(b[8:])
	known := slices.Contains(t.in.sources, ssrc)
	if t.in.ctx == nil || !known && len(t.in.sources) == maxSources && t.port == nil {
		return nil, false
	}
	if !t.in.rtp.take(cost(t.section.kind, len(b)), now) {
		w.engine.counters.limited.Add(1)
		return nil, false
	}

	plain, err := t.in.ctx.DecryptRTP(w.plain[:0], b, &w.header)
	if err != nil {
		return nil, false
	}
	w.decrypted = true
	if !known && t.port == nil { // the cipher counts the sources of phones
		t.in.sources = append(t.in.sources, ssrc)
	}
	return plain, true
}

// forward handles an SRTP packet. It returns the audio level that the client reports.
func (w *worker) forward(t *transport, b []byte, now time.Time) (loudness uint8, ok bool) {
	t.in.mu.Lock()
	defer t.in.mu.Unlock()
	plain, ok := w.decryptRTP(t, b, now)
	if !ok {
		return silence, false
	}
	p, ok := parse(plain)
	s := t.section
	f := s.formats.Load()
	if !ok || f.names[p.kind] == "" || !f.accepts {
		return silence, false
	}

	s.source.Store(p.ssrc)
	s.receiver.measure(p, f.clock, now)
	s.highest.Store(uint32(s.receiver.highest))
	if s.leg.muted(s.kind).Load() {
		return silence, true
	}
	if tap := s.leg.tap.Load(); tap != nil && p.end > p.offset {
		(*tap).Packet(calls.Packet{
			Kind:    s.kind,
			Codec:   f.names[p.kind],
			SSRC:    p.ssrc,
			Seq:     p.seq,
			Time:    p.time,
			Arrived: now,
			Payload: plain[p.offset:p.end],
		})
	}

	if v := s.leg.voice.Load(); v != nil && s.kind == calls.Audio {
		v.put(f.names[p.kind], p, plain[p.offset:p.end], now)
	}
	if fan := s.fan.Load(); fan != nil {
		w.forwardAll(s, *fan, plain, p, now)
	}

	r := s.route.Load()
	if r == nil {
		return rewriteExtensions(plain, p, &noExtensions, f.level), true
	}

	loudness = rewriteExtensions(plain, p, &r.extensions, f.level)
	if kind := r.types[p.kind]; kind >= 0 {
		plain[1] = plain[1]&0x80 | uint8(kind)
		if r.to.out.forward(w, s, plain, p, f.names[p.kind], now) {
			s.askKeyframe(now)
		}
	}
	return loudness, true
}

// noExtensions maps all header extensions to 0, which turns them into padding.
var noExtensions [16]uint8
