// Package opus reads Opus audio in Ogg files (RFC 6716, RFC 7845).
//
// A [Source] is the audio as 16-bit samples at 48 kHz, and can be read from any frame. An Opus
// decoder depends on all packets since it started, and its state cannot be saved. The audio is
// therefore divided into segments of four seconds. Each segment has its own decoder, so the samples
// of a frame never depend on earlier reads. The decoder starts half a second before the segment;
// RFC 7845 recommends only 80 ms. The samples therefore differ only inaudibly from those of one
// decoder for the whole file.
//
// [Source.Index] returns the positions of the segments in the file. Without the index, [Open] finds
// them by reading all pages. Lost packets become silence of the same length, so times stay correct.
//
// No input can cause large allocations. The work for a read is limited by the number of frames, and
// by the number of bytes between two marks of the index.
package opus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The errors for files that cannot be decoded.
var (
	ErrNotOpus  = errors.New("not an Ogg file with Opus")
	ErrSparse   = errors.New("an Ogg file with hardly any audio in it")
	ErrChannels = errors.New("an Opus stream with more than two channels or an unknown channel mapping")
)

// Version must change when the same file decodes to different samples.
const Version = "1"

// Rate is the sample rate of every [Source].
const Rate = 48_000

const (
	segmentFrames = 4 * Rate
	preroll       = Rate / 2 // number of frames that a decoder starts before its segment
	// maxDecoded is how many frames may be decoded for a segment. In valid files, about half as
	// many are decoded.
	maxDecoded = 2 * (segmentFrames + preroll)
)

// Facts describes a stream.
type Facts struct {
	Channels int
	Frames   int64
}

// Scan returns the facts of a file of the given size. It reads all pages. It accepts streams that
// [Open] cannot decode because of their channels.
func Scan(r io.ReaderAt, size int64) (Facts, error) {
	w := newWindow(r, size)
	h, err := readHead(w)
	if err != nil {
		return Facts{}, err
	}
	x, err := scan(w, h)
	if err != nil {
		return Facts{}, err
	}
	return Facts{Channels: h.channels, Frames: x.frames(h)}, nil
}

// A head is the packet at the start of a stream (RFC 7845, section 5.1).
type head struct {
	serial   uint32
	channels int
	skip     int64   // frames at the start that are not played
	gain     float64 // factor for all samples
	plain    bool    // the stream has one or two channels with the usual mapping
}

// readHead reads the first page of a file.
func readHead(w *window) (head, error) {
	b, p, ok, err := w.pageAt(0)
	if err != nil {
		return head{}, err
	}
	if !ok {
		return head{}, ErrNotOpus
	}
	packet := b[p.body : p.next-p.offset]
	if len(packet) < 19 || !bytes.HasPrefix(packet, []byte("OpusHead")) {
		return head{}, ErrNotOpus
	}

	le := binary.LittleEndian
	h := head{
		serial:   p.serial,
		channels: int(packet[9]),
		skip:     int64(le.Uint16(packet[10:])),
		gain:     1,
	}
	if gain := int16(le.Uint16(packet[16:])); gain != 0 {
		h.gain = math.Pow(10, float64(gain)/(20*256))
	}
	if h.channels == 1 || h.channels == 2 {
		h.plain = packet[18] == 0 || oneStream(packet, h.channels)
	}
	return h, nil
}

// oneStream reports whether a channel mapping is equivalent to the usual mapping for this number of
// channels (RFC 7845, section 5.1.1).
func oneStream(packet []byte, channels int) bool {
	usual := []byte{1, byte(channels - 1), 0, 1}[:2+channels]
	return bytes.HasPrefix(packet[19:], usual)
}

// duration returns the number of frames in a packet. If the packet is invalid, it returns 0 (RFC
// 6716, section 3).
func duration(packet []byte) int {
	if len(packet) == 0 {
		return 0
	}
	config := packet[0] >> 3
	var frames int
	switch {
	case config < 12: // SILK
		frames = [4]int{480, 960, 1920, 2880}[config&3]
	case config < 16: // hybrid
		frames = [2]int{480, 960}[config&1]
	default: // CELT
		frames = 120 << (config & 3)
	}

	switch packet[0] & 3 {
	case 1, 2:
		frames *= 2
	case 3:
		if len(packet) < 2 {
			return 0
		}
		frames *= int(packet[1] & 63)
	}
	if frames > maxFrames {
		return 0
	}
	return frames
}

// maxFrames is the number of frames in the longest packet, which lasts 120 ms.
const maxFrames = 5760

// failed wraps an error from reading the file.
func failed(err error) error { return fmt.Errorf("reading Ogg: %w", err) }
