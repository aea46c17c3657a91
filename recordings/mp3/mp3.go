// Package mp3 encodes audio as MPEG Layer III, and decodes it. The results never depend on the
// order in which they are requested.
//
// A [File] is the audio of an MP3 file.
//
// A [Stream] is a whole MP3 file that is never stored. Its length is known before anything is
// encoded. Any range of it can be computed separately, with the same bytes on every machine and
// architecture.
//
// Three rules make this possible. Frames have a constant bit rate. Frames do not borrow bits from
// each other (main_data_begin is 0). Each frame is a pure function of the samples near it. In
// addition, floating-point code converts each product explicitly. According to the language
// specification this rounds the product, so compilers may not fuse it with a sum.
//
// The package implements ISO/IEC 11172-3 and 13818-3, whose clauses the comments cite. Rates from 8
// to 12 kHz use MPEG-2.5, an extension of these standards that all players support.
package mp3

import (
	"errors"
	"fmt"
)

// Version identifies the bytes that this encoder produces. It changes when they do, so entity tags
// should include it.
const Version = "4"

// A Source is audio as 16-bit samples. Its length is known, and it can be read from any position. A
// frame of a Source is one sample of each channel. ReadFrames fills dst with interleaved frames,
// beginning with the frame number in at. It returns the number of frames that it filled, and io.EOF
// at the end. The samples of a frame never depend on what was read before.
type Source interface {
	Rate() int
	Channels() int
	Frames() int64
	ReadFrames(dst []int16, at int64) (n int, err error)
}

// ErrSource is the error for audio that cannot be encoded.
var ErrSource = errors.New("this audio cannot be encoded as MP3")

// A format holds the properties that all frames of a stream share.
type format struct {
	rate     int // sample rate, one of the nine of Layer III
	channels int // 1 or 2, coded independently
	kbits    int // kilobits per second
	version  int // as in the header: 3 MPEG-1, 2 MPEG-2, 0 MPEG-2.5
	rateBits int // sampling frequency as in the header
	granules int // granules of 576 samples per frame
	bands    bands
	size     int64 // size of a frame without padding, in bytes
	rest     int64 // what size lacks, in units of 1/rate byte; padding makes up for it
}

// rates lists the sample rates of Layer III with their bit rates. Telephone audio sounds unchanged at
// these bit rates, and players and vendors expect them.
var rates = []struct {
	rate         int
	mono, stereo int // kilobits per second
	version      int // as in the header
	bits         int // sampling frequency as in the header
}{
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

// Limits of the sample rate. Audio with a rate that Layer III does not have is resampled.
const (
	minRate = 1000
	maxRate = 768000
)

// formatOf returns the format for audio with this rate and number of channels. The format has the
// lowest rate that keeps at least 95 % of the frequency band or, if no rate does, the highest rate.
func formatOf(rate, channels int) (*format, error) {
	if rate < minRate || rate > maxRate {
		return nil, fmt.Errorf("%w: %d samples a second", ErrSource, rate)
	}
	if channels != 1 && channels != 2 {
		return nil, fmt.Errorf("%w: %d channels", ErrSource, channels)
	}

	chosen := rates[len(rates)-1]
	for _, r := range rates {
		if r.rate*100 >= rate*95 {
			chosen = r
			break
		}
	}

	f := &format{
		rate:     chosen.rate,
		channels: channels,
		kbits:    chosen.mono,
		version:  chosen.version,
		rateBits: chosen.bits,
		granules: 1,
	}
	if channels == 2 {
		f.kbits = chosen.stereo
	}
	if f.mpeg1() {
		f.granules = 2
	}

	f.bands = bandsOf(f.version, f.rateBits)
	slots := int64(f.granules) * 72 * 1000 * int64(f.kbits) // ISO 11172-3, 2.4.3.1
	f.size = slots / int64(f.rate)
	f.rest = slots % int64(f.rate)
	return f, nil
}

func (f *format) mpeg1() bool { return f.version == 3 }

// samples returns the number of samples in a frame.
func (f *format) samples() int { return 576 * f.granules }

// offset returns the position of frame n. It also determines which frames are padded, so that
// padding depends only on the frame's number.
func (f *format) offset(n int64) int64 { return n*f.size + n*f.rest/int64(f.rate) }

// frameAt returns the frame that contains the byte at pos.
func (f *format) frameAt(pos int64) int64 {
	n := pos / (f.size + 1)
	for f.offset(n+1) <= pos {
		n += max(1, (pos-f.offset(n+1))/(f.size+1))
	}
	return n
}

// padded reports whether frame n has a padding byte.
func (f *format) padded(n int64) bool { return f.offset(n+1)-f.offset(n) > f.size }

// sideInfo returns the length of the side information after the header, in bytes (2.4.1.7).
func (f *format) sideInfo() int {
	switch {
	case f.mpeg1() && f.channels == 2:
		return 32
	case f.mpeg1() || f.channels == 2:
		return 17
	}
	return 9
}

// header returns the header of a frame (2.4.1.3).
func (f *format) header(padded bool) uint32 {
	h := uint32(0x7ff)<<21 | uint32(f.version)<<19 | 1<<17 | 1<<16 // Layer III, without a checksum
	h |= uint32(f.bitrateIndex())<<12 | uint32(f.rateBits)<<10
	if padded {
		h |= 1 << 9
	}
	if f.channels == 1 {
		h |= 3 << 6
	}
	return h | 1<<2 // original, not a copy
}

// bitrateIndex returns bitrate_index as defined in ISO 11172-3, 2.4.2.3, and in ISO 13818-3,
// 2.4.2.3.
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
