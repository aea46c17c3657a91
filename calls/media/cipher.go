package media

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// A cipher encrypts or decrypts packets. Package srtp has the implementation for browsers.
type cipher interface {
	EncryptRTP(dst, packet []byte, h *rtp.Header) ([]byte, error)
	EncryptRTCP(dst, packet []byte, h *rtcp.Header) ([]byte, error)
	// DecryptRTP accepts each packet of a source once.
	DecryptRTP(dst, packet []byte, h *rtp.Header) ([]byte, error)
	DecryptRTCP(dst, packet []byte, h *rtcp.Header) ([]byte, error)
}

// A plainCipher is the cipher for phones that do not encrypt. The zero value is ready to use. It
// checks sequence numbers like SRTP, because a sender relies on never seeing a packet twice.
type plainCipher struct{ sources []*plainSource }

// A plainSource records which packets of an SSRC have arrived.
type plainSource struct {
	ssrc     uint32
	highest  int64 // highest extended sequence number; -1 before the first packet
	seen     window
	rejected int    // consecutive rejected packets
	restarts uint32 // number of restarts; it is added to the SSRC of packets
}

// maxRejected is the number of consecutive packets that may be old or repeated. After that many,
// the phone has probably restarted its sequence numbers, as some phones do after a hold. Its packets
// then get a different SSRC, because new sequence numbers mean a new stream.
const maxRejected = 25

var errRepeated = errors.New("the packet is old or repeated")

// EncryptRTP implements cipher.
func (*plainCipher) EncryptRTP(dst, packet []byte, _ *rtp.Header) ([]byte, error) {
	return append(dst, packet...), nil
}

// EncryptRTCP implements cipher.
func (*plainCipher) EncryptRTCP(dst, packet []byte, _ *rtcp.Header) ([]byte, error) {
	return append(dst, packet...), nil
}

// DecryptRTCP implements cipher.
func (*plainCipher) DecryptRTCP(dst, packet []byte, _ *rtcp.Header) ([]byte, error) {
	return append(dst, packet...), nil
}

// DecryptRTP implements cipher.
func (c *plainCipher) DecryptRTP(dst, packet []byte, _ *rtp.Header) ([]byte, error) {
	seq, s := binary.BigEndian.Uint16(packet[2:]), c.source(binary.BigEndian.Uint32(packet[8:]))
	count := s.highest + int64(int16(seq-uint16(s.highest)))
	if s.highest < 0 || s.rejected == maxRejected {
		if s.highest >= 0 {
			s.restarts++
		}
		count = int64(seq) + 1<<16 // leaves room for older packets that arrive later
		s.highest, s.seen = count-1, window{}
	}
	if s.seen.has(count, s.highest) {
		s.rejected++
		return nil, errRepeated
	}

	s.rejected = 0
	s.seen.add(count, s.highest)
	s.highest = max(s.highest, count)
	dst = append(dst, packet...)
	binary.BigEndian.PutUint32(dst[8:], s.ssrc+s.restarts)
	return dst, nil
}

// source returns the plainSource of an SSRC. If maxSources are already known, it forgets the one
// that appeared first.
func (c *plainCipher) source(ssrc uint32) *plainSource {
	for _, s := range c.sources {
		if s.ssrc == ssrc {
			return s
		}
	}
	if len(c.sources) == maxSources {
		c.sources = slices.Delete(c.sources, 0, 1)
	}
	s := &plainSource{ssrc: ssrc, highest: -1}
	c.sources = append(c.sources, s)
	return s
}
