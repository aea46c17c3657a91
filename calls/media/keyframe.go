package media

import (
	"encoding/binary"
	"time"

	"github.com/pion/rtcp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

const (
	keyframePatience = 3 * time.Second        // how long a gate stays closed without a key frame
	keyframeInterval = 300 * time.Millisecond // the minimum time between two requests
)

// A keyframeGate holds video back from a receiver until a key frame arrives. Clients can decode a
// key frame without earlier frames.
//
// Requests for key frames are limited twice. The gate limits the requests on behalf of its
// receiver, because every packet that it holds back could cause one. Then [section.askKeyframe]
// limits the requests to the source, because many receivers in a room share it.
type keyframeGate struct {
	closed      bool
	closedAt    time.Time
	requestedAt time.Time // when allowRequest last returned true
}

// close holds back packets until the next key frame.
func (g *keyframeGate) close(now time.Time) {
	g.closed = true
	g.closedAt = now
}

// admit reports whether to send a packet from a source. A closed gate opens at the start of a key
// frame, or if none has started within keyframePatience. If a key frame opens the gate, admit tells
// the source that its key frame has arrived.
func (g *keyframeGate) admit(from *section, codec string, payload []byte, now time.Time) bool {
	if !g.closed {
		return true
	}
	if startsKeyframe(codec, payload) {
		from.keyframeArrived()
		g.closed = false
		return true
	}
	if now.Sub(g.closedAt) >= keyframePatience {
		g.closed = false
		return true
	}
	return false
}

// allowRequest reports whether the receiver may request a key frame now. If so, it records the
// request.
func (g *keyframeGate) allowRequest(now time.Time) bool {
	if now.Sub(g.requestedAt) < keyframeInterval {
		return false
	}
	g.requestedAt = now
	return true
}

// askKeyframe asks the client for a key frame of the video that it sends (RFC 4585, section 6.3.1).
// It does nothing if the client was asked less than keyframeInterval ago and has not answered.
func (s *section) askKeyframe(now time.Time) {
	source := s.source.Load()
	if source == 0 || s.kind != calls.Video {
		return
	}

	last := s.keyframeAsked.Load()
	if stamp(now)-last < int64(keyframeInterval) {
		return
	}
	if !s.keyframeAsked.CompareAndSwap(last, stamp(now)) {
		return // another goroutine is already asking
	}

	s.out.sendRTCP(s.leg.engine, &rtcp.PictureLossIndication{
		SenderSSRC: s.out.ssrc,
		MediaSSRC:  source,
	})
}

// keyframeArrived lets the next request go to the client immediately. A receiver that was added
// just after the key frame needs another one.
func (s *section) keyframeArrived() {
	s.keyframeAsked.Store(0)
}

// startsKeyframe reports whether a payload is the beginning of a key frame. Every payload of an
// unknown codec counts as one, so that the gate does not delay it.
func startsKeyframe(codec string, payload []byte) bool {
	switch codec {
	case sdp.VP8:
		return startsVP8(payload)
	case sdp.H264:
		return startsH264(payload)
	}
	return true
}

// startsVP8 implements startsKeyframe for VP8. It skips the payload descriptor (RFC 7741, section
// 4.2) and reads the first byte of the frame (section 4.3).
func startsVP8(b []byte) bool {
	const (
		// The first byte of the descriptor.
		extended       = 0x80 // X: a byte with the flags below follows
		partitionStart = 0x10 // S: the packet begins a partition
		partitionIndex = 0x07 // PID: 0 is the first partition of a frame

		// The flags, which announce more bytes.
		hasPictureID  = 0x80 // I: one byte, or two if the first has longPictureID
		longPictureID = 0x80 // M
		hasLayerZero  = 0x40 // L: the byte TL0PICIDX
		hasLayer      = 0x20 // T: the byte with TID and KEYIDX
		hasKeyIndex   = 0x10 // K: the same byte, which is present if T or K is set

		// The first byte of the frame.
		interframe = 0x01 // P: 0 in key frames
	)
	if len(b) < 2 || b[0]&(partitionStart|partitionIndex) != partitionStart {
		return false
	}

	next := 1
	if b[0]&extended != 0 {
		flags := b[1]
		next = 2
		if flags&hasPictureID != 0 && len(b) > next {
			if b[next]&longPictureID != 0 {
				next++
			}
			next++
		}
		if flags&hasLayerZero != 0 {
			next++
		}
		if flags&(hasLayer|hasKeyIndex) != 0 {
			next++
		}
	}
	return len(b) > next && b[next]&interframe == 0
}

// startsH264 implements startsKeyframe for H.264. It looks for the two kinds of NAL units that
// begin a key frame: a sequence parameter set, or the start of an IDR slice. A packet holds one
// unit, a fragment of a unit, or several units (RFC 6184, section 5).
func startsH264(b []byte) bool {
	const (
		unitType      = 0x1f // the bits of a unit's first byte that are its type
		fragmentStart = 0x80 // the bit in the second byte of a unit's first fragment

		// Types of units.
		idr          = 5
		parameterSet = 7
		aggregate    = 24 // STAP-A: units, each after its size in two bytes
		fragment     = 28 // FU-A: the type of the unit is in the second byte
	)
	if len(b) < 2 {
		return false
	}

	switch b[0] & unitType {
	case idr, parameterSet:
		return true
	case fragment:
		return b[1]&fragmentStart != 0 && b[1]&unitType == idr
	case aggregate:
		rest := b[1:]
		for len(rest) > 2 {
			kind := rest[2] & unitType
			if kind == idr || kind == parameterSet {
				return true
			}
			size := int(binary.BigEndian.Uint16(rest))
			end := 2 + max(1, size) // an empty unit is invalid, but must not stop the loop
			rest = rest[min(end, len(rest)):]
		}
	}
	return false
}
