package record

import (
	"fmt"

	"github.com/pion/opus"

	"github.com/selvage/selvage/recordings/wav"
)

// A decoder decodes the packets of one sender, even if the codec changes.
type decoder struct {
	opus   *opus.Decoder               // nil before the first Opus packet, and after an error
	others [aLawCodec + 1]*wav.Decoder // decoders by codec; nil before the codec's first packet

	doubler doubler
	narrow  []int16 // buffer for samples to be doubled
}

// wavNames contains the names in package wav of all codecs except Opus.
var wavNames = map[codec]string{g722Codec: "g722", muLawCodec: "mulaw", aLawCodec: "alaw"}

// reset makes the decoder forget all earlier packets.
func (d *decoder) reset() { *d = decoder{narrow: d.narrow} }

// maxOpus is the longest Opus packet in milliseconds (RFC 6716, section 3.2.5).
const maxOpus = 120

// decode appends the samples of a packet at the given rate. For codecs other than Opus, the rate is
// 8000 or 16000. If the packet cannot be decoded, decode appends nothing.
func (d *decoder) decode(to []int16, c codec, payload []byte, rate int) []int16 {
	if c == opusCodec {
		return d.decodeOpus(to, payload, rate)
	}

	if d.others[c] == nil {
		decoder, err := wav.NewDecoder(wavNames[c])
		if err != nil {
			return to // wav supports all codecs used here
		}
		d.others[c] = decoder
	}
	n := d.others[c].Samples(len(payload))

	// G.722 has 16000 samples per second. The other codecs have 8000.
	if c == g722Codec || rate == 8000 {
		start := len(to)
		to = grow(to, n)
		d.others[c].Decode(to[start:], payload)
		return to
	}
	d.narrow = grow(d.narrow[:0], n)
	d.others[c].Decode(d.narrow, payload)
	return d.doubler.double(to, d.narrow)
}

// decodeOpus appends the samples of an Opus packet. The packet comes from a client, which may be
// hostile, so a panic in the decoder counts as an error.
func (d *decoder) decodeOpus(to []int16, payload []byte, rate int) []int16 {
	start := len(to)
	to = grow(to, maxOpus*rate/1000)
	n, err := d.tryOpus(to[start:], payload, rate)
	if err != nil {
		d.opus = nil
		return to[:start]
	}
	return to[:start+n]
}

func (d *decoder) tryOpus(to []int16, payload []byte, rate int) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding Opus: %v", p)
		}
	}()
	if d.opus == nil {
		decoder, err := opus.NewDecoderWithOutput(rate, 1)
		if err != nil {
			return 0, fmt.Errorf("decoding Opus: %w", err)
		}
		d.opus = &decoder
	}
	return d.opus.DecodeToInt16(payload, to)
}

// grow returns s with n more elements, whose content is undefined.
func grow(s []int16, n int) []int16 {
	for cap(s) < len(s)+n {
		s = append(s[:cap(s)], 0)[:len(s)]
	}
	return s[:len(s)+n]
}

// halfBand interpolates between two samples. It holds one half of a symmetric windowed sinc
// (Blackman), scaled so that the whole filter has the sum 2^15.
var halfBand = [8]int32{20531, -6023, 2783, -1322, 576, -212, 56, -5}

// A doubler doubles the sample rate of audio that arrives in pieces.
type doubler struct {
	past [16]int16
}

// double appends two samples for each sample of src. The result is delayed by eight samples of src,
// which is one millisecond.
func (d *doubler) double(to, src []int16) []int16 {
	for _, v := range src {
		copy(d.past[:], d.past[1:])
		d.past[15] = v
		sum := int32(1 << 14)
		for k, c := range halfBand {
			sum += c * (int32(d.past[7-k]) + int32(d.past[8+k]))
		}
		to = append(to, d.past[7], int16(min(max(sum>>15, -32768), 32767)))
	}
	return to
}
