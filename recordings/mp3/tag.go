package mp3

import "encoding/binary"

// delay is by how much this encoder's output is late, less the 529 samples that each
// decoder adds. The filterbanks are 1057 late, 481 and the overlap of the MDCT; lead
// makes whole granules of that, since ffmpeg is at a loss where one packet has samples
// to drop at both of its ends.
const (
	decoder = 529
	delay   = 2*576 - decoder
	lead    = 2*576 - 481 - 576
)

// id3 is what the file begins with: an ID3v2.3 tag that names the encoder, by which
// programs that look at the first bytes know what they have.
const id3 = "ID3\x03\x00\x00\x00\x00\x00\x12TSSE\x00\x00\x00\x08\x00\x00\x00selvage"

// fewest are the frames of audio that ffmpeg wants to see before it believes in any.
const fewest = 2

// frames is how many frames of audio so many samples make: all that decoders need to
// give the last of them.
func (f *format) frames(samples int64) int64 {
	spf := int64(f.samples())
	return max(fewest, (samples+delay+decoder+spf-1)/spf)
}

// tag writes the first frame: it is silent, and tells how long the others are (the
// Info tag, as LAME extended it). Its name begins with LAME since players look at
// the delay and the padding of no other.
func (f *format) tag(buf []byte, samples, size int64) {
	clear(buf)
	binary.BigEndian.PutUint32(buf, f.header(false))
	frames := f.frames(samples)
	info := buf[4+f.sideInfo():]
	copy(info, "Info")
	binary.BigEndian.PutUint32(info[4:], 1|2|4|8) // frames, bytes, contents, quality
	binary.BigEndian.PutUint32(info[8:], uint32(min(frames, 1<<32-1)))
	binary.BigEndian.PutUint32(info[12:], uint32(min(size, 1<<32-1)))
	for i := range 100 {
		info[16+i] = byte(i * 256 / 100)
	}
	binary.BigEndian.PutUint32(info[116:], 0)
	copy(info[120:], "LAMEselvg")
	info[129] = 1 // of a constant bit rate
	padding := frames*int64(f.samples()) - delay - samples
	info[140] = byte(f.kbits)
	info[141] = delay >> 4
	info[142] = byte(delay&15)<<4 | byte(padding>>8)
	info[143] = byte(padding)
	binary.BigEndian.PutUint32(info[148:], uint32(min(size, 1<<32-1)))
	at := 4 + f.sideInfo() + 154
	binary.BigEndian.PutUint16(buf[at:], crc16(buf[:at]))
}

// crc16 is that of the tag: the polynomial x^16+x^15+x^2+1, backwards.
func crc16(data []byte) (crc uint16) {
	for _, b := range data {
		crc ^= uint16(b)
		for range 8 {
			if crc&1 == 1 {
				crc = crc>>1 ^ 0xa001
			} else {
				crc >>= 1
			}
		}
	}
	return crc
}
