package media

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

const (
	keyframePatience = 3 * time.Second        // after this time, video is sent without a key frame
	keyframeInterval = 300 * time.Millisecond // between two requests
)

// A keyframe holds video back until a key frame arrives. Clients can decode a key frame without
// earlier frames.
type keyframe struct {
	wanted bool
	since  time.Time // when wanted became true
	asked  time.Time // when allowRequest last returned true
}

// require holds back packets until the next key frame.
func (k *keyframe) require(now time.Time) {
	k.wanted = true
	k.since = now
}

// passes reports whether a packet from a source may be sent. If so, all later packets may be sent,
// too, until require is called again.
func (k *keyframe) passes(from *section, codec string, payload []byte, now time.Time) bool {
	if !k.wanted {
		return true
	}
	if startsKeyframe(codec, payload) {
		from.asked.Store(0) // answered: the next request may follow immediately
	} else if now.Sub(k.since) < keyframePatience {
		return false
	}
	k.wanted = false
	return true
}

// allowRequest reports whether the source may be asked for a key frame now, and records that it was
// asked.
func (k *keyframe) allowRequest(now time.Time) bool {
	if now.Sub(k.asked) < keyframeInterval {
		return false
	}
	k.asked = now
	return true
}

// startsKeyframe reports whether a payload is the beginning of a key frame.
func startsKeyframe(codec string, b []byte) bool {
	switch codec {
	case sdp.VP8:
		return startsVP8(b)
	case sdp.H264:
		return startsH264(b)
	}
	return true
}

// startsVP8 implements startsKeyframe for VP8. It reads the payload descriptor (RFC 7741, section
// 4.2) and the P bit that follows.
func startsVP8(b []byte) bool {
	if len(b) < 2 || b[0]&0x17 != 0x10 { // S=1, PID=0
		return false
	}
	i := 1
	if b[0]&0x80 != 0 {
		flags := b[1]
		i++
		if flags&0x80 != 0 && len(b) > i { // picture id of 7 or 15 bits
			i += 1 + int(b[i]>>7)
		}
		if flags&0x40 != 0 {
			i++
		}
		if flags&0x30 != 0 {
			i++
		}
	}
	return len(b) > i && b[i]&1 == 0
}

// startsH264 implements startsKeyframe for H.264. It looks for a parameter set or the start of an
// IDR slice (RFC 6184, section 5).
func startsH264(b []byte) bool {
	if len(b) < 2 {
		return false
	}
	const idr, parameters, aggregate, fragment = 5, 7, 24, 28
	switch b[0] & 0x1f {
	case idr, parameters:
		return true
	case fragment:
		return b[1]&0x80 != 0 && b[1]&0x1f == idr
	case aggregate:
		for rest := b[1:]; len(rest) > 2; {
			size := int(rest[0])<<8 | int(rest[1])
			if kind := rest[2] & 0x1f; kind == idr || kind == parameters {
				return true
			}
			rest = rest[min(len(rest), 2+max(1, size)):]
		}
	}
	return false
}

// askKeyframe asks the client for a key frame of the video that it sends (RFC 4585, section 6.3.1),
// at most once per keyframeInterval.
func (s *section) askKeyframe(now time.Time) {
	source := s.source.Load()
	if source == 0 || s.kind != calls.Video {
		return
	}
	last := s.asked.Load()
	if now.UnixNano()-last < int64(keyframeInterval) || !s.asked.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	s.out.sendRTCP(s.leg.engine, &rtcp.PictureLossIndication{SenderSSRC: s.out.ssrc, MediaSSRC: source})
}
