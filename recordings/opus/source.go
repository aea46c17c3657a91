package opus

import (
	"errors"
	"fmt"
	"io"
	"math"

	pion "github.com/pion/opus"
)

// A Source is the audio of a file. It is not safe for concurrent use.
//
// Frames are numbered from the first one that is played. A position numbers frames as the pages of
// the file do, where the first frame of the stream may have any number.
type Source struct {
	head  head
	index *index
	size  int64

	timeline       *timeline
	packets        [][]byte // packets of the page that have not been decoded
	packetPosition int64    // position of the first of these packets

	segment int64 // number of the segment that is being decoded, or -1
	decoder *pion.Decoder
	budget  int64 // number of frames that may still be decoded for the segment

	samples   []int16 // decoded frames, interleaved
	samplesAt int64   // position of the first decoded frame
}

// Open returns the audio of a file of the given size. index returns the result of [Source.Index]
// for the same file, or nil. Open ignores a damaged index.
func Open(r io.ReaderAt, size int64, index func() ([]byte, error)) (*Source, error) {
	w := newWindow(r, size)
	h, err := readHead(w)
	if err != nil {
		return nil, err
	}
	if !h.plain {
		return nil, ErrChannels
	}

	s := &Source{
		head:     h,
		size:     size,
		timeline: newTimeline(w, h),
		segment:  -1,
		samples:  make([]int16, 0, maxFrames*h.channels),
	}
	if index != nil {
		b, err := index()
		if err != nil {
			return nil, fmt.Errorf("reading index: %w", err)
		}
		s.index, _ = parseIndex(b, size)
	}
	if s.index == nil {
		s.index, err = scan(w, h)
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Rate returns the sample rate, which is always [Rate].
func (s *Source) Rate() int { return Rate }

// Channels returns the number of channels, which is 1 or 2.
func (s *Source) Channels() int { return s.head.channels }

// Frames returns the number of frames.
func (s *Source) Frames() int64 { return s.index.frames(s.head) }

// Index returns the positions of the segments in the file, for a later [Open]. The result is at most
// about 512 KiB long.
func (s *Source) Index() []byte { return s.index.marshal(s.size) }

// ReadFrames fills dst with interleaved frames, beginning with frame at. It returns the number of
// frames that it filled, and io.EOF at the end.
func (s *Source) ReadFrames(dst []int16, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("reading audio: negative position")
	}
	channels := s.head.channels
	for n*channels < len(dst) {
		frame := at + int64(n)
		if frame >= s.Frames() {
			return n, io.EOF
		}
		have, err := s.decoded(frame)
		if err != nil {
			return n, fmt.Errorf("reading audio: %w", err)
		}
		n += copy(dst[n*channels:], have) / channels
	}
	return n, nil
}

// decoded returns at least one frame, beginning with the given frame, up to the end of its segment.
func (s *Source) decoded(frame int64) ([]int16, error) {
	position := s.index.position(s.head, frame)
	number := frame / segmentFrames
	if number != s.segment || position < s.samplesAt {
		s.startSegment(number)
	}
	for position >= s.samplesEnd() {
		if err := s.decode(); err != nil {
			s.segment = -1
			return nil, err
		}
	}

	segmentEnd := s.index.position(s.head, min((number+1)*segmentFrames, s.Frames()))
	first := int(position-s.samplesAt) * s.head.channels
	last := first + int(segmentEnd-position)*s.head.channels
	return s.samples[first:min(last, len(s.samples))], nil
}

// samplesEnd returns the position after the decoded frames.
func (s *Source) samplesEnd() int64 {
	return s.samplesAt + int64(len(s.samples)/s.head.channels)
}

// startSegment starts a new decoder for a segment.
func (s *Source) startSegment(number int64) {
	s.segment = number
	s.decoder = nil
	s.budget = maxDecoded
	s.samples = s.samples[:0]
	s.samplesAt = s.index.lead(s.head, number)

	m := s.index.markOf(number)
	s.timeline.restart(m)
	s.packets = nil
	s.packetPosition = m.start
}

// decode replaces the decoded frames with the frames that follow them. Where packets are missing,
// these are silent.
func (s *Source) decode() error {
	end := s.samplesEnd()
	packet, err := s.packetAfter(end)
	if err != nil {
		return err
	}

	s.samplesAt = end
	if packet == nil {
		s.silence(maxFrames)
		return nil
	}
	if gap := s.packetPosition - end; gap > 0 {
		s.silence(min(gap, maxFrames))
		return nil
	}

	s.samplesAt = s.packetPosition
	s.decodeOrSilence(packet)
	s.cutAtPageEnd()
	s.dropPacket()
	return nil
}

// packetAfter returns the next packet that has frames after a position. It drops earlier packets,
// and those that lie after the end of their page. At the end of the file, it returns nil.
func (s *Source) packetAfter(position int64) ([]byte, error) {
	for {
		for len(s.packets) == 0 {
			_, err := s.timeline.nextPage()
			if errors.Is(err, io.EOF) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			s.packets, s.packetPosition = s.timeline.packets, s.timeline.start
		}

		packet := s.packets[0]
		packetEnd := s.packetPosition + int64(duration(packet))
		if packetEnd > position && s.packetPosition < s.timeline.end {
			return packet, nil
		}
		s.dropPacket()
	}
}

// dropPacket moves on to the packet after the first one.
func (s *Source) dropPacket() {
	s.packetPosition += int64(duration(s.packets[0]))
	s.packets = s.packets[1:]
}

// cutAtPageEnd removes decoded frames that lie after the end of the page. The last packet of a file
// may have such frames.
func (s *Source) cutAtPageEnd() {
	frames := max(0, s.timeline.end-s.samplesAt)
	s.samples = s.samples[:min(int64(len(s.samples)), frames*int64(s.head.channels))]
}

// silence replaces the decoded frames with silent frames.
func (s *Source) silence(frames int64) {
	s.samples = s.samples[:frames*int64(s.head.channels)]
	clear(s.samples)
}

// decodeOrSilence replaces the decoded frames with those of a packet. A packet that cannot be
// decoded, or that exceeds the budget of its segment, becomes silence. The budget limits the work
// for a file whose pages end long before their packets.
func (s *Source) decodeOrSilence(packet []byte) {
	frames := int64(duration(packet))
	s.silence(frames)
	s.budget -= frames
	if s.budget < 0 {
		return
	}

	n, err := s.decodePacket(packet)
	if err != nil {
		s.decoder = nil
		clear(s.samples)
		return
	}

	clear(s.samples[min(n*s.head.channels, len(s.samples)):])
	if s.head.gain != 1 {
		for i, v := range s.samples {
			louder := math.Round(float64(v) * s.head.gain)
			s.samples[i] = int16(min(max(louder, math.MinInt16), math.MaxInt16))
		}
	}
}

// decodePacket decodes a packet and returns its number of frames. Uploads may be hostile, so a panic
// of the decoder counts as an error.
func (s *Source) decodePacket(packet []byte) (frames int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding Opus: %v", p)
		}
	}()
	if s.decoder == nil {
		decoder, err := pion.NewDecoderWithOutput(Rate, s.head.channels)
		if err != nil {
			return 0, fmt.Errorf("decoding Opus: %w", err)
		}
		s.decoder = &decoder
	}
	return s.decoder.DecodeToInt16(packet, s.samples)
}
