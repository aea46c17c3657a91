package record

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/selvage/selvage/calls"
)

// A spool is a file that consists of the magic text and blocks. A block consists of the length of
// its entries, a checksum and the entries. The checksum continues the previous block's checksum, so
// that a block is valid only in its place. Therefore, data that a crash or a full disk leaves after
// the last good block is ignored.
const (
	anyMagic  = "selvage spool " // the beginning of the magic text in all formats
	magic     = anyMagic + "1\n"
	blockHead = 8 // length and checksum with 32 bits each, in little-endian order
	maxBlock  = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// firstSum is the checksum before the first block.
func firstSum() uint32 { return crc32.Checksum([]byte(magic), castagnoli) }

// seal fills in the head of a block, and returns its checksum. before is the previous block's
// checksum.
func seal(block []byte, before uint32) uint32 {
	sum := crc32.Update(before, castagnoli, block[blockHead:])
	binary.LittleEndian.PutUint32(block, uint32(len(block)-blockHead))
	binary.LittleEndian.PutUint32(block[4:], sum)
	return sum
}

// A kind is the type of an entry. In the file, it is followed by the length of the body (16 bits),
// the time since the start of the recording in microseconds (64 bits) and the body.
type kind uint8

const (
	headerKind kind = iota + 1 // the call, as JSON; always the first entry
	packetKind                 // an RTP packet: side and codec, SSRC, sequence number, timestamp, payload
	clockKind                  // a side's RTP time and the matching wall-clock time in microseconds
	pauseKind                  // a pause begins; the body is 1 to cut out the pause
	resumeKind                 // the pause ends
	lostKind                   // the number of dropped packets, in 32 bits
	stopKind                   // the recording ended normally
)

const (
	entryHead  = 1 + 2 + 8
	packetHead = 1 + 4 + 2 + 4
	clockBody  = 1 + 4 + 8
	maxPayload = 8 << 10 // the largest entry of a packet; the engine's packets are smaller
)

// A codec identifies the codec of stored packets. Spools contain its numeric value.
type codec uint8

const (
	opusCodec codec = iota + 1
	g722Codec
	muLawCodec
	aLawCodec
)

// codecOf returns the codec for a name in [calls.Packet], or 0 if packets of this codec are not
// stored. Telephone events are not stored, because digits may be secrets.
func codecOf(name string) codec {
	switch name {
	case "opus":
		return opusCodec
	case "G722":
		return g722Codec
	case "PCMU":
		return muLawCodec
	case "PCMA":
		return aLawCodec
	}
	return 0
}

// clockRate returns the RTP clock rate in Hz. For G.722, it is 8000 because of a mistake in an
// early specification (RFC 3551, section 4.5.2).
func (c codec) clockRate() int64 {
	if c == opusCodec {
		return 48000
	}
	return 8000
}

// An entry is one entry of a spool. Its kind determines which fields are set.
type entry struct {
	kind    kind
	at      time.Duration // time since the start
	side    calls.Side
	codec   codec
	ssrc    uint32
	seq     uint16
	rtp     uint32
	wall    int64  // the sender's clock in microseconds
	skip    bool   // whether to cut out the pause
	payload []byte // the payload of a packet; for other kinds, the body
}

// appendEntry appends an entry without its body.
func appendEntry(b []byte, k kind, at time.Duration, size int) []byte {
	b = append(b, byte(k))
	b = binary.LittleEndian.AppendUint16(b, uint16(size))
	return binary.LittleEndian.AppendUint64(b, uint64(max(at, 0).Microseconds()))
}

func appendPacket(b []byte, at time.Duration, side calls.Side, c codec, p *calls.Packet) []byte {
	b = appendEntry(b, packetKind, at, packetHead+len(p.Payload))
	b = append(b, byte(side)<<4|byte(c))
	b = binary.LittleEndian.AppendUint32(b, p.SSRC)
	b = binary.LittleEndian.AppendUint16(b, p.Seq)
	b = binary.LittleEndian.AppendUint32(b, p.Time)
	return append(b, p.Payload...)
}

func appendClock(b []byte, at time.Duration, side calls.Side, rtp uint32, wall time.Time) []byte {
	b = appendEntry(b, clockKind, at, clockBody)
	b = append(b, byte(side)<<4)
	b = binary.LittleEndian.AppendUint32(b, rtp)
	return binary.LittleEndian.AppendUint64(b, uint64(wall.UnixMicro()))
}

func appendPause(b []byte, at time.Duration, skip bool) []byte {
	b = appendEntry(b, pauseKind, at, 1)
	if skip {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendLost(b []byte, at time.Duration, count uint32) []byte {
	return binary.LittleEndian.AppendUint32(appendEntry(b, lostKind, at, 4), count)
}

// parseEntry parses the first entry of a block and returns the rest. ok is false if this version
// cannot have written the entry. The entry's payload is a part of b.
func parseEntry(b []byte) (e entry, rest []byte, ok bool) {
	if len(b) < entryHead {
		return entry{}, nil, false
	}
	size, at := int(binary.LittleEndian.Uint16(b[1:])), binary.LittleEndian.Uint64(b[3:])
	body := b[entryHead:]
	if size > len(body) || at > uint64(maxLength.Microseconds()) {
		return entry{}, nil, false
	}

	e = entry{kind: kind(b[0]), at: time.Duration(at) * time.Microsecond}
	return e, body[size:], e.parseBody(body[:size])
}

// maxLength limits the times in a spool.
const maxLength = 30 * 24 * time.Hour

// parseBody parses the body of an entry.
func (e *entry) parseBody(b []byte) bool {
	switch e.kind {
	case headerKind:
		e.payload = b
		return true
	case packetKind:
		return len(b) > packetHead && e.parsePacket(b)
	case clockKind:
		return len(b) == clockBody && e.parseClock(b)

	case pauseKind:
		e.skip = len(b) == 1 && b[0] == 1
		return len(b) == 1
	case lostKind:
		e.payload = b
		return len(b) == 4
	case resumeKind, stopKind:
		return len(b) == 0
	}
	return false
}

func (e *entry) parsePacket(b []byte) bool {
	e.side, e.codec = calls.Side(b[0]>>4), codec(b[0]&15)
	e.ssrc, e.seq = binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint16(b[5:])
	e.rtp, e.payload = binary.LittleEndian.Uint32(b[7:]), b[packetHead:]
	return e.side <= calls.CalleeSide && e.codec >= opusCodec && e.codec <= aLawCodec
}

func (e *entry) parseClock(b []byte) bool {
	e.side, e.rtp = calls.Side(b[0]>>4), binary.LittleEndian.Uint32(b[1:])
	e.wall = int64(binary.LittleEndian.Uint64(b[5:]))
	return e.side <= calls.CalleeSide
}
