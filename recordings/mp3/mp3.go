// Package mp3 encodes audio as MPEG Layer III so that no byte of the result
// depends on how it is asked for.
//
// A [Stream] is a whole MP3 file that exists nowhere: its length is known before
// anything is encoded, and any range of it is computed by itself, the same bytes
// on every machine and every architecture. That works because frames have a
// constant bit rate, borrow no bits from each other (main_data_begin is 0), and
// each is a pure function of the samples near it. Floating point is written so
// that no compiler may fuse a product with a sum: each product is converted
// explicitly, which the language says rounds it.
//
// It is written from ISO/IEC 11172-3 and 13818-3, whose clauses the comments
// name; MPEG-2.5, for 8 to 12 kHz, is the extension of them that all players know.
package mp3

import (
	"errors"
	"fmt"
)

// Version names the bytes that this encoder gives: it is another one whenever
// they are, so that it belongs into an entity tag.
const Version = "4"

// A Source is audio as 16-bit samples, whose length is known and which can be
// read from any frame, which here is one sample of each channel. ReadFrames fills
// dst, interleaved, from the frame at, and gives how many frames it filled; io.EOF
// at the end. What it gives for a frame never depends on what was read before.
type Source interface {
	Rate() int
	Channels() int
	Frames() int64
	ReadFrames(dst []int16, at int64) (n int, err error)
}

// ErrSource is what New says of audio that no MP3 can be made of.
var ErrSource = errors.New("no MP3 can be made of this audio")

// A format is all that a header says of the frames of a stream.
type format struct {
	rate     int // of samples, one of the nine of Layer III
	channels int // 1 or 2, which are independent of each other
	kbits    int // a second
	version  int // the two bits of the header: 3 MPEG-1, 2 MPEG-2, 0 MPEG-2.5
	rateBits int // the two bits of the sampling frequency
	granules int // of 576 samples, in a frame
	bands    bands
	size     int64 // bytes of a frame without padding
	rest     int64 // what the division by rate leaves: the slots that padding makes up for
}

// rates are those of Layer III, with the bit rate of one channel: what a telephone
// network's audio needs to sound like itself, and players and vendors expect.
var rates = []struct{ rate, mono, stereo, version, bits int }{
	{8000, 32, 64, 0, 2},
	{11025, 40, 64, 0, 0},
	{12000, 40, 64, 0, 1},
	{16000, 48, 96, 2, 2},
	{22050, 64, 128, 2, 0},
	{24000, 64, 128, 2, 1},
	{32000, 64, 128, 3, 2},
	{44100, 64, 128, 3, 0},
	{48000, 64, 128, 3, 1},
}

// The rates of samples that are accepted, to be resampled to one of Layer III.
const (
	minRate = 1000
	maxRate = 768000
)

// formatOf picks the format for audio of some rate and number of channels: the
// lowest rate that keeps at least 95 % of its band.
func formatOf(rate, channels int) (*format, error) {
	if rate < minRate || rate > maxRate {
		return nil, fmt.Errorf("%w: %d samples a second", ErrSource, rate)
	}
	if channels != 1 && channels != 2 {
		return nil, fmt.Errorf("%w: %d channels", ErrSource, channels)
	}
	r := rates[len(rates)-1]
	for i := range rates {
		if rates[i].rate*100 >= rate*95 {
			r = rates[i]
			break
		}
	}
	f := &format{rate: r.rate, channels: 1, kbits: r.mono, version: r.version, rateBits: r.bits, granules: 1}
	if channels == 2 {
		f.channels, f.kbits = 2, r.stereo
	}
	if f.mpeg1() {
		f.granules = 2
	}
	f.bands = bandsOf(f.version, f.rateBits)
	slots := int64(f.granules) * 72 * 1000 * int64(f.kbits) // ISO 11172-3, 2.4.3.1
	f.size, f.rest = slots/int64(f.rate), slots%int64(f.rate)
	return f, nil
}

func (f *format) mpeg1() bool { return f.version == 3 }

// samples are those of a frame.
func (f *format) samples() int { return 576 * f.granules }

// offset is where frame n begins. Padding slots are spread by it, so that they are
// a function of the frame's number alone.
func (f *format) offset(n int64) int64 { return n*f.size + n*f.rest/int64(f.rate) }

// frameAt is the frame that the byte at pos belongs to.
func (f *format) frameAt(pos int64) int64 {
	n := pos / (f.size + 1)
	for f.offset(n+1) <= pos {
		n += max(1, (pos-f.offset(n+1))/(f.size+1))
	}
	return n
}

// padded tells whether frame n has one byte more than the others.
func (f *format) padded(n int64) bool { return f.offset(n+1)-f.offset(n) > f.size }

// sideInfo is the length of what follows the header, in bytes (2.4.1.7).
func (f *format) sideInfo() int {
	switch {
	case f.mpeg1() && f.channels == 2:
		return 32
	case f.mpeg1() || f.channels == 2:
		return 17
	}
	return 9
}

// header is that of a frame (2.4.1.3).
func (f *format) header(padded bool) uint32 {
	h := uint32(0x7ff)<<21 | uint32(f.version)<<19 | 1<<17 | 1<<16 // Layer III, without a checksum
	h |= uint32(f.bitrateIndex())<<12 | uint32(f.rateBits)<<10
	if padded {
		h |= 1 << 9
	}
	if f.channels == 1 {
		h |= 3 << 6
	}
	return h | 1<<2 // an original
}

// bitrateIndex is that of ISO 11172-3, 2.4.2.3, and of ISO 13818-3, 2.4.2.3.
func (f *format) bitrateIndex() int {
	table := []int{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
	if f.mpeg1() {
		table = []int{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
	}
	for i, k := range table {
		if k == f.kbits {
			return i + 1
		}
	}
	panic("mp3: a bit rate that is in no table")
}
