package mp3

import "encoding/binary"

// delay is the delay of this encoder's output, without the 529 samples that each decoder adds. The
// filterbanks delay the output by 1057 samples: 481 in the polyphase filterbank, and 576 by the
// overlap of the MDCT. lead extends this to whole granules, because ffmpeg fails on a packet if
// samples at both of its ends have to be dropped.
const (
	decoderDelay = 529
	delay        = 2*576 - decoderDelay
	lead         = 2*576 - 481 - 576
)

// id3 is the beginning of the file: an ID3v2.3 tag that names the encoder. Programs that recognize
// files by their first bytes need it.
const id3 = "ID3\x03\x00\x00\x00\x00\x00\x12TSSE\x00\x00\x00\x08\x00\x00\x00selvage"

// minFrames is the minimum number of audio frames. ffmpeg needs them to recognize audio.
const minFrames = 2

// frames returns how many audio frames are needed so that decoders return the given number of
// samples.
func (f *format) frames(samples int64) int64 {
	spf := int64(f.samples())
	return max(minFrames, (samples+delay+decoderDelay+spf-1)/spf)
}

// tag writes the first frame, which is silent. It contains the Info tag, with the length of the
// file, and LAME's extension of that tag. The name of the encoder in it begins with LAME, because
// players read delay and padding only from LAME tags.
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
	info[129] = 1 // constant bit rate

	padding := frames*int64(f.samples()) - delay - samples
	info[140] = byte(f.kbits)
	info[141] = delay >> 4
	info[142] = byte(delay&15)<<4 | byte(padding>>8)
	info[143] = byte(padding)
	binary.BigEndian.PutUint32(info[148:], uint32(min(size, 1<<32-1)))

	at := 4 + f.sideInfo() + 154
	binary.BigEndian.PutUint16(buf[at:], crc16(buf[:at]))
}

// crc16 returns the checksum of the tag, which uses the polynomial x^16+x^15+x^2+1, reversed.
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
