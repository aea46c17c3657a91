package media

import "encoding/binary"

// A packet is the header of a decrypted RTP packet (RFC 3550, section 5.1).
type packet struct {
	kind   uint8 // payload type
	seq    uint16
	time   uint32
	ssrc   uint32
	fixed  int // length of the header without its extensions
	offset int // where the payload begins
	end    int // where the payload ends, without padding
}

// Bits of the first byte of a packet.
const (
	hasPadding    = 0x20
	hasExtensions = 0x10
)

// parse reads the header of an RTP packet and reports whether it is well formed.
func parse(b []byte) (p packet, ok bool) {
	if len(b) < 12 {
		return p, false
	}
	p = packet{
		kind: b[1] & 0x7f,
		seq:  binary.BigEndian.Uint16(b[2:]),
		time: binary.BigEndian.Uint32(b[4:]),
		ssrc: binary.BigEndian.Uint32(b[8:]),
	}
	p.fixed = 12 + 4*int(b[0]&0x0f)
	p.offset, p.end = p.fixed, len(b)
	if b[0]&hasExtensions != 0 {
		if len(b) < p.fixed+4 {
			return p, false
		}
		p.offset += 4 + 4*int(binary.BigEndian.Uint16(b[p.fixed+2:]))
	}
	if b[0]&hasPadding != 0 {
		p.end -= int(b[len(b)-1])
	}
	return p, p.offset <= p.end
}

// One-byte header extensions (RFC 8285, section 4.2).
const (
	oneByte    = 0xbede
	paddingID  = 0
	reservedID = 15
)

// silence is the lowest audio level: -127 dBov (RFC 6464, section 3).
const silence = 127

// rewriteExtensions rewrites the ids of header extensions in place. Extensions whose new id is 0,
// and extensions in an unknown format, become padding. The result is the audio level in the
// extension whose id is level, or silence if there is none.
func rewriteExtensions(b []byte, p packet, ids *[16]uint8, level uint8) (loudness uint8) {
	loudness = silence
	if b[0]&hasExtensions == 0 {
		return loudness
	}
	elements := b[p.fixed+4 : p.offset]
	if binary.BigEndian.Uint16(b[p.fixed:]) != oneByte {
		binary.BigEndian.PutUint16(b[p.fixed:], oneByte)
		clear(elements)
		return loudness
	}

	for i := 0; i < len(elements); {
		id, size := elements[i]>>4, int(elements[i]&0x0f)+1
		if id == paddingID {
			i++
			continue
		}

		end := i + 1 + size
		if id == reservedID || end > len(elements) {
			clear(elements[i:]) // RFC 8285, section 4.2: stop here
			break
		}
		if id == level {
			loudness = elements[i+1] & 0x7f
		}

		if to := ids[id]; to == 0 {
			clear(elements[i:end])
		} else {
			elements[i] = to<<4 | uint8(size-1)
		}
		i = end
	}
	return loudness
}
