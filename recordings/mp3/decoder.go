package mp3

import (
	"encoding/binary"
	"math"
)

// maxBack is the number of bytes of earlier frames that a frame may use.
const maxBack = 511

// A decoder decodes consecutive frames. It never fails. Frames that cannot be decoded are silent.
type decoder struct {
	*tables
	bands   bands
	rateKey int // version and sampling frequency for which bands is set, or -1

	kept []byte // last bytes of the main data of earlier frames
	data []byte // main data of the frame

	factors [2]factors
	lines   [2][576]float32
	rest    [2][32][18]float32 // second halves of the blocks of the previous granule
	filters [2]synthesis
	out     [2][32]float32
}

func newDecoder() *decoder { return &decoder{tables: decoding(), rateKey: -1} }

// forget drops the data of earlier frames. It is called if the next frame does not directly follow
// the last one.
func (d *decoder) forget() { d.kept = d.kept[:0] }

// frame decodes a frame. It appends its samples to out, interleaved for the given number of
// channels.
func (d *decoder) frame(h header, frame []byte, channels int, out []int16) []int16 {
	if key := h.version<<2 | h.rateBits; key != d.rateKey {
		d.bands = bandsOf(h.version, h.rateBits)
		d.rateKey = key
	}
	side, r, ok := d.assemble(&h, frame)

	start := 0
	for i := range h.granules() {
		for ch := range h.channels {
			l := &side.granules[i][ch]
			if !ok {
				d.lines[ch] = [576]float32{}
				continue
			}
			r.at = start
			end := min(start+l.bits, 8*(len(d.data)-bitPadding))
			d.spectrum(&r, &h, l, ch, i, end, side.sharedFactors[ch])
			start = end
		}

		if ok && h.channels == 2 {
			s := stereo{
				middle:    h.modes&2 != 0,
				intensity: h.modes&1 != 0,
				mpeg1:     h.mpeg1(),
				left:      &d.lines[0],
				right:     &d.lines[1],
			}
			s.join(&side.granules[i][1], &d.factors[1], &d.bands)
		}
		out = d.synthesize(&h, &side.granules[i], channels, out)
	}
	return out
}

// assemble returns the side information of a frame, and a reader of its main data. ok is false if
// the frame cannot be decoded.
func (d *decoder) assemble(h *header, frame []byte) (side sideInfo, r bitReader, ok bool) {
	head := h.head()
	d.data = append(d.data[:0], frame[:min(head, len(frame))]...)
	d.data = append(d.data, make([]byte, bitPadding)...)
	sideReader := bitReader{d.data, 8 * (head - h.sideInfo())}
	if len(frame) >= head {
		side, ok = readSide(&sideReader, h, &d.bands)
	}

	missing := side.mainDataBegin > len(d.kept)
	d.data = d.data[:0]
	if ok && !missing {
		d.data = append(d.data, d.kept[len(d.kept)-side.mainDataBegin:]...)
	}
	main := frame[min(head, len(frame)):]
	d.data = append(d.data, main...)
	d.data = append(d.data, make([]byte, bitPadding)...)

	d.kept = append(d.kept, main...)
	if n := len(d.kept); n > maxBack {
		d.kept = append(d.kept[:0], d.kept[n-maxBack:]...)
	}
	return side, bitReader{buf: d.data}, ok && !missing
}

// spectrum reads the lines of a granule of one channel.
func (d *decoder) spectrum(r *bitReader, h *header, l *layout, ch, number, end int, share uint8) {
	f := &d.factors[ch]
	if h.mpeg1() {
		if number == 0 {
			share = 0
		}
		f.read1(r, l, share)
	} else {
		f.read2(r, l, h.modes&1 != 0 && ch == 1)
	}
	d.values(r, l, end, &d.lines[ch])
	l.scaleLines(f, &d.bands, &d.lines[ch])
}

// synthesize converts the lines of a granule to samples, and appends the samples to out.
func (d *decoder) synthesize(h *header, layouts *[2]layout, channels int, out []int16) []int16 {
	at := len(out)
	for range 576 * channels {
		out = append(out, 0)
	}

	for ch := range h.channels {
		subs := d.subbands(&layouts[ch], ch)
		for t := range 18 {
			var sub [32]float32
			for sb := range 32 {
				sub[sb] = subs[sb][t]
				if sb&1 == 1 && t&1 == 1 { // every second subband is mirrored
					sub[sb] = -sub[sb]
				}
			}
			d.filters[ch].add(&sub, &d.out[ch])
			write(out[at+32*t*channels:], &d.out[ch], ch, channels, h.channels)
		}
	}
	return out
}

// write writes 32 samples of a channel into interleaved frames. If their number of channels differs
// from the number of coded channels, it copies one channel to both, or adds half of each.
func write(out []int16, samples *[32]float32, ch, channels, coded int) {
	for i, v := range samples {
		frame := out[i*channels:]
		switch {
		case channels == coded:
			frame[ch] = round16(v)
		case coded == 1:
			frame[0], frame[1] = round16(v), round16(v)
		default:
			frame[0] += round16(v / 2)
		}
	}
}

// round16 rounds a sample.
func round16(v float32) int16 {
	v = min(max(v, math.MinInt16), math.MaxInt16)
	return int16(math.Round(float64(v)))
}

// subbands transforms the lines of a channel into 18 samples of each subband.
func (d *decoder) subbands(l *layout, ch int) *[32][18]float32 {
	lines := &d.lines[ch]
	long := 32 // number of subbands with long blocks
	if l.kind == short {
		f := &d.factors[ch]
		long = d.bands.long[f.long] / 18
		interleave(lines, f.short, &d.bands)
	}
	realias(lines, min(31, max(0, long-1)))

	var subs [32][18]float32
	for sb := range 32 {
		in, rest := (*[18]float32)(lines[18*sb:]), &d.rest[ch][sb]
		switch {
		case sb >= long:
			imdct12(in, rest, &subs[sb])
		case l.kind == short: // the long blocks of a mixed granule
			imdct36(in, normal, rest, &subs[sb])
		default:
			imdct36(in, l.kind, rest, &subs[sb])
		}
	}
	return &subs
}

// A header is the header of a frame.
type header struct {
	version  int // as in the header: 3 MPEG-1, 2 MPEG-2, 0 MPEG-2.5
	rateBits int // sampling frequency as in the header
	modes    int // mode_extension if the channels are joint, otherwise 0
	checked  bool
	length   int // in bytes
	rate     int
	channels int
}

// bitrates contains the bit rates of Layer III in kbit/s, first for MPEG-1, and then for lower
// sample rates.
var bitrates = [2][16]int{
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

// parseHeader parses the header of a frame (ISO 11172-3, 2.4.2.3). If b does not begin with a
// header, ok is false.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < 4 || b[0] != 0xFF || b[1]&0xE6 != 0xE2 { // sync word and Layer III
		return h, false
	}
	bits := binary.BigEndian.Uint32(b)
	h.version, h.rateBits = int(bits>>19&3), int(bits>>10&3)
	h.rate = [4]int{44100, 48000, 32000, 0}[h.rateBits] >> [4]int{2, 0, 1, 0}[h.version]
	h.checked = bits>>16&1 == 0

	low := 1
	if h.mpeg1() {
		low = 0
	}
	kbits := bitrates[low][bits>>12&15]
	if h.version == 1 || h.rate == 0 || kbits == 0 || bits&3 == 2 {
		return h, false
	}

	h.length = h.samples()/8*kbits*1000/h.rate + int(bits>>9&1)
	switch h.channels = 2; bits >> 6 & 3 {
	case 1:
		h.modes = int(bits >> 4 & 3)
	case 3:
		h.channels = 1
	}
	return h, true
}

func (h *header) mpeg1() bool { return h.version == 3 }

// granules returns the number of granules of each channel.
func (h *header) granules() int {
	if h.mpeg1() {
		return 2
	}
	return 1
}

// samples returns the number of samples of each channel.
func (h *header) samples() int { return 576 * h.granules() }

// sideInfo returns the length of the side information in bytes (2.4.1.7).
func (h *header) sideInfo() int {
	switch {
	case h.mpeg1() && h.channels == 2:
		return 32
	case h.mpeg1() || h.channels == 2:
		return 17
	}
	return 9
}

// head returns the number of bytes before the main data.
func (h *header) head() int {
	if h.checked {
		return 4 + 2 + h.sideInfo()
	}
	return 4 + h.sideInfo()
}

// like reports whether two frames can belong to the same stream.
func (h header) like(other header) bool {
	return h.rate == other.rate && h.samples() == other.samples()
}
