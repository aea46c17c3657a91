package levels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// An Outline contains the lowest and highest sample of each channel in each pixel, as 8-bit numbers
// in the order of audiowaveform.
type Outline struct {
	Rate     int
	Channels int
	PerPixel int    // frames per pixel
	Data     []int8 // lowest and highest sample of each pixel and channel
}

// PixelsPerSecond is the resolution of measured outlines. Very long audio has a lower resolution.
const PixelsPerSecond = 20

// maxData is the maximum number of values in an outline. It is limited because each request for an
// outline encodes it again.
const maxData = 512 << 10

// Length returns the number of pixels.
func (o Outline) Length() int { return len(o.Data) / (2 * max(1, o.Channels)) }

// An outliner builds an Outline.
type outliner struct {
	Outline
	perPixel int64
	left     int64 // frames that the current pixel still lacks
}

func newOutliner(rate, channels int, frames int64) outliner {
	perPixel := max(1, int64(rate+PixelsPerSecond/2)/PixelsPerSecond)
	for frames/perPixel*int64(2*channels) > maxData {
		perPixel *= 2
	}
	return outliner{
		Outline: Outline{
			Rate:     rate,
			Channels: channels,
			PerPixel: int(perPixel),
			Data:     make([]int8, 0, (frames/perPixel+1)*int64(2*channels)),
		},
		perPixel: perPixel,
		left:     perPixel,
	}
}

func (o *outliner) add(lowest, highest int) {
	if len(o.Data) < 2*maxData { // the source may be longer than its stated length
		o.Data = append(o.Data, int8(lowest/256), int8(highest/256))
	}
}

func (o *outliner) end() Outline { return o.Outline }

// Scale returns the outline with perPixel frames per pixel. frames is the length of the audio. If
// perPixel is not greater than o.PerPixel, Scale returns o unchanged. A new pixel includes every
// old pixel that it overlaps.
func (o Outline) Scale(perPixel int, frames int64) Outline {
	if perPixel <= o.PerPixel {
		return o
	}
	to := Outline{Rate: o.Rate, Channels: o.Channels, PerPixel: perPixel}
	for first := int64(0); first < frames; first += int64(perPixel) {
		last := min(frames, first+int64(perPixel)) - 1
		pixels := o.pixels(first/int64(o.PerPixel), last/int64(o.PerPixel))
		for c := range o.Channels {
			lowest, highest := extremes(pixels, c, o.Channels)
			to.Data = append(to.Data, lowest, highest)
		}
	}
	return to
}

// pixels returns the values of the pixels from first to last, as far as they exist.
func (o Outline) pixels(first, last int64) []int8 {
	perPixel, all := int64(2*o.Channels), int64(len(o.Data))
	return o.Data[min(first*perPixel, all):min((last+1)*perPixel, all)]
}

// extremes returns the lowest and highest sample of a channel in pixels, or silence if pixels is
// empty.
func extremes(pixels []int8, channel, channels int) (lowest, highest int8) {
	for at := 2 * channel; at < len(pixels); at += 2 * channels {
		if at == 2*channel {
			lowest, highest = pixels[at], pixels[at+1]
		}
		lowest, highest = min(lowest, pixels[at]), max(highest, pixels[at+1])
	}
	return lowest, highest
}

// The binary format of audiowaveform, version 2, which has a header followed by the values.
const (
	version    = 2
	headerSize = 24
	eightBits  = 1 // flag for 8-bit numbers
)

// Marshal encodes the outline in the format of audiowaveform's .dat files.
func (o Outline) Marshal() []byte {
	b := make([]byte, headerSize, headerSize+len(o.Data))
	for i, v := range []int{version, eightBits, o.Rate, o.PerPixel, o.Length(), o.Channels} {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
	for _, v := range o.Data {
		b = append(b, byte(v))
	}
	return b
}

// ParseOutline parses the result of Marshal.
func ParseOutline(b []byte) (o Outline, err error) {
	if len(b) < headerSize {
		return o, errors.New("reading outline: truncated")
	}

	var head [headerSize / 4]int
	for i := range head {
		head[i] = int(binary.LittleEndian.Uint32(b[4*i:]))
	}
	o = Outline{Rate: head[2], PerPixel: head[3], Channels: head[5]}
	length := head[4]
	knownFormat := head[0] == version && head[1] == eightBits
	plausible := o.Rate >= 1 && o.PerPixel >= 1 && o.Channels >= 1
	if !knownFormat || !plausible || 2*length*o.Channels != len(b)-headerSize {
		return Outline{}, errors.New("reading outline: invalid header")
	}

	o.Data = make([]int8, len(b)-headerSize)
	for i, v := range b[headerSize:] {
		o.Data[i] = int8(v)
	}
	return o, nil
}

// MarshalJSON encodes the outline in audiowaveform's JSON format.
func (o Outline) MarshalJSON() ([]byte, error) {
	const head = `{"version":%d,"channels":%d,"sample_rate":%d,"samples_per_pixel":%d,"bits":8,"length":%d,"data":[`
	b := make([]byte, 0, len(head)+64+5*len(o.Data)) // the longest value is -128 with a comma
	b = fmt.Appendf(b, head, version, o.Channels, o.Rate, o.PerPixel, o.Length())
	for i, v := range o.Data {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, "]}"...), nil
}

// Waves returns the values that wavesurfer.js draws. For each channel, they are the lowest and
// highest sample of each pixel alternately, from -1 to 1.
func (o Outline) Waves() [][]float64 {
	waves := make([][]float64, o.Channels)
	for i := 0; i < len(o.Data); i += 2 {
		channel := i / 2 % o.Channels
		lowest := round(float64(o.Data[i])/128, 3)
		highest := round(float64(o.Data[i+1])/128, 3)
		waves[channel] = append(waves[channel], lowest, highest)
	}
	return waves
}
