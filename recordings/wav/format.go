package wav

import (
	"encoding/binary"
	"fmt"
)

// A Format contains the content of the chunk "fmt ".
type Format struct {
	Codec       string // ffmpeg's name, such as pcm_s16le, mulaw or gsm_ms
	SampleRate  int    // in Hz
	Channels    int
	Bits        int // bits per stored sample; 0 if this varies
	ValidBits   int // bits in use; fewer than Bits only in the format EXTENSIBLE
	BlockAlign  int // bytes per block: a frame of PCM, a packet of GSM or ADPCM
	BlockFrames int // frames per block
}

// The limits of plausible values.
const (
	maxChannels = 32
	minRate     = 1_000 // too low for speech; also prevents overflow of lengths
	maxRate     = 768_000
)

// Format tags from mmreg.h.
const (
	tagPCM        = 0x0001
	tagMSADPCM    = 0x0002
	tagFloat      = 0x0003
	tagALaw       = 0x0006
	tagMuLaw      = 0x0007
	tagIMAADPCM   = 0x0011
	tagGSM610     = 0x0031
	tagExtensible = 0xFFFE
)

// subformat is the part of an EXTENSIBLE format's GUID after the tag.
const subformat = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"

// parseFormat parses the body of "fmt ", which has at least 16 bytes. It calls repaired for each
// repair.
func parseFormat(body []byte, order binary.ByteOrder, repaired func(format string, args ...any)) (Format, error) {
	tag := order.Uint16(body[0:])
	byteRate := int64(order.Uint32(body[8:]))
	f := Format{
		Channels:   int(order.Uint16(body[2:])),
		SampleRate: int(order.Uint32(body[4:])),
		BlockAlign: int(order.Uint16(body[12:])),
		Bits:       int(order.Uint16(body[14:])),
	}

	f.ValidBits = f.Bits
	if err := f.Check(); err != nil {
		return f, err
	}
	if tag == tagExtensible {
		var err error
		if tag, err = f.extensible(body, order); err != nil {
			return f, err
		}
	}

	if err := f.codec(tag, order); err != nil {
		return f, err
	}
	if f.BlockFrames == 1 {
		f.align(byteRate, repaired)
	}
	return f, nil
}

// Check returns [ErrBroken] if no file with speech has this number of channels or sample rate.
func (f *Format) Check() error {
	if f.Channels < 1 || f.Channels > maxChannels {
		return broken("it claims %d channels", f.Channels)
	}
	if f.SampleRate < minRate || f.SampleRate > maxRate {
		return broken("it claims a sample rate of %d Hz", f.SampleRate)
	}
	return nil
}

// extensible returns the tag in the GUID of an EXTENSIBLE format.
func (f *Format) extensible(body []byte, order binary.ByteOrder) (tag uint16, err error) {
	switch {
	case order != binary.LittleEndian:
		return 0, fmt.Errorf("%w: EXTENSIBLE in RIFX", ErrCodec)
	case len(body) < 40 || order.Uint16(body[16:]) < 22:
		return 0, broken("its EXTENSIBLE format is truncated")
	case string(body[26:40]) != subformat:
		return 0, fmt.Errorf("%w: subformat %x", ErrCodec, body[24:40])
	}
	if valid := int(order.Uint16(body[18:])); valid > 0 && valid < f.Bits {
		f.ValidBits = valid
	}
	return order.Uint16(body[24:]), nil
}

// codec sets the codec for a tag, and the frames per block.
func (f *Format) codec(tag uint16, order binary.ByteOrder) error {
	f.BlockFrames = 1
	switch tag {
	case tagPCM:
		return f.linear("s", order, 8, 16, 24, 32)
	case tagFloat:
		return f.linear("f", order, 32, 64)
	case tagALaw:
		f.Codec, f.Bits, f.ValidBits = "alaw", 8, 8
		return nil
	case tagMuLaw:
		f.Codec, f.Bits, f.ValidBits = "mulaw", 8, 8
		return nil
	}

	if order != binary.LittleEndian {
		return fmt.Errorf("%w: format tag 0x%04x in RIFX", ErrCodec, tag)
	}
	switch tag {
	case tagIMAADPCM:
		f.Codec = "adpcm_ima_wav"
		return f.adpcm()
	case tagMSADPCM:
		f.Codec = "adpcm_ms"
		return f.adpcm()
	case tagGSM610:
		return f.gsm()
	}
	return fmt.Errorf("%w: format tag 0x%04x", ErrCodec, tag)
}

// linear sets the codec for PCM or float from its kind (s or f), bits and byte order.
func (f *Format) linear(kind string, order binary.ByteOrder, widths ...int) error {
	end := "le"
	if order == binary.BigEndian {
		end = "be"
	}

	for _, bits := range widths {
		if f.Bits == bits {
			f.Codec = fmt.Sprintf("pcm_%s%d%s", kind, bits, end)
		}
	}

	if f.Codec == "" {
		return broken("it claims samples of %d bits", f.Bits)
	}
	if f.Bits == 8 {
		f.Codec = "pcm_u8"
	}
	return nil
}

// align repairs redundant fields. The block align must be one sample per channel, and determines
// the byte rate.
func (f *Format) align(byteRate int64, repaired func(format string, args ...any)) {
	align := f.Channels * f.Bits / 8
	if f.BlockAlign != align {
		repaired("the block align is %d, not %d", align, f.BlockAlign)
		f.BlockAlign = align
	}
	if want := int64(align) * int64(f.SampleRate); byteRate != want {
		repaired("the byte rate is %d, not %d", want, byteRate)
	}
}

// adpcm checks the block size of 4-bit ADPCM, whose blocks have a header for each channel.
func (f *Format) adpcm() error {
	if f.Bits != 4 {
		return broken("it claims ADPCM samples of %d bits", f.Bits)
	}
	f.BlockFrames = f.inBlock(f.BlockAlign)
	if f.BlockFrames <= 2 {
		return broken("it claims ADPCM blocks of %d bytes", f.BlockAlign)
	}
	return nil
}

// inBlock returns the number of frames in an ADPCM block of this many bytes. The header contains
// the first frames.
func (f *Format) inBlock(bytes int) int {
	switch n := f.Channels; {
	case f.Codec == "adpcm_ms" && bytes >= 7*n:
		return 2 + (bytes-7*n)*2/n
	case f.Codec == "adpcm_ima_wav" && bytes >= 4*n:
		return 1 + (bytes-4*n)/(4*n)*8
	}
	return 0
}

// gsm sets the codec to WAV49, whose packets contain two GSM frames in 65 bytes.
func (f *Format) gsm() error {
	if f.Channels != 1 || f.BlockAlign != 65 {
		return broken("it claims GSM blocks of %d bytes and %d channels", f.BlockAlign, f.Channels)
	}
	f.Codec, f.BlockFrames = "gsm_ms", 320
	f.Bits, f.ValidBits = 0, 0
	return nil
}

// frames returns the number of frames in length bytes. The last ADPCM block may be short.
func (f *Format) frames(length int64) int64 {
	blocks, rest := length/int64(f.BlockAlign), length%int64(f.BlockAlign)
	return blocks*int64(f.BlockFrames) + int64(f.inBlock(int(rest)))
}
