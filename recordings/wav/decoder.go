package wav

import "fmt"

// A Decoder decodes audio that arrives in pieces, such as the payloads of RTP packets. It keeps its
// state between pieces, and is not safe for concurrent use.
type Decoder struct {
	perByte int
	decode  func(dst []int16, src []byte)
}

// NewDecoder returns a decoder for "mulaw", "alaw" or "g722". For any other codec, it returns
// [ErrCodec].
func NewDecoder(codec string) (*Decoder, error) {
	switch codec {
	case "mulaw", "alaw":
		return &Decoder{1, directDecoder(codec)}, nil
	case "g722":
		g := &g722{}
		g.reset()
		return &Decoder{2, g.block}, nil
	}
	return nil, fmt.Errorf("%w: %s in pieces", ErrCodec, codec)
}

// Samples returns the number of samples in a piece of size bytes.
func (d *Decoder) Samples(size int) int { return size * d.perByte }

// Decode decodes a piece of audio into dst, which must have room for [Decoder.Samples] samples.
func (d *Decoder) Decode(dst []int16, src []byte) {
	for len(src) > 0 {
		n := min(len(src), g722Block)
		d.decode(dst[:n*d.perByte], src[:n])
		dst, src = dst[n*d.perByte:], src[n:]
	}
}
