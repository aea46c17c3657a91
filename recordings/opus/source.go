package opus

import (
	"errors"
	"fmt"
	"io"
	"math"

	pion "github.com/pion/opus"
)

// A Source is the audio of a file. It is not safe for concurrent use.
type Source struct {
	head  head
	index *index
	size  int64

	timeline *timeline
	segment  int64 // number of the segment that is being decoded, or -1
	packet   int   // next packet of the page
	at       int64 // position of the next packet
	decoder  *pion.Decoder
	budget   int64   // number of frames that may still be decoded for the segment
	out      []int16 // decoded frames, interleaved
	from     int64   // position of the first decoded frame
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

	s := &Source{head: h, size: size, segment: -1, out: make([]int16, 0, maxFrames*h.channels)}
	if index != nil {
		b, err := index()
		if err != nil {
			return nil, fmt.Errorf("reading index: %w", err)
		}
		s.index, _ = parseIndex(b, size)
	}
	if s.index == nil {
		if s.index, err = scan(w, h); err != nil {
			return nil, err
		}
	}
	s.timeline = newTimeline(w, h)
	return s, nil
}

// Rate returns [Rate].
func (s *Source) Rate() int { return Rate }

// Channels returns the number of channels, which is 1 or 2.
func (s *Source) Channels() int { return s.head.channels }

// Frames returns the number of frames.
func (s *Source) Frames() int64 { return s.index.frames(s.head) }

// Index returns the positions of the segments in the file, for a later [Open]. The result
// is at most 512 KiB long.
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
	position, number := s.index.start+s.head.skip+frame, frame/segment
	if number != s.segment || position < s.from {
		s.begin(number)
	}
	for position >= s.end() {
		if err := s.decode(); err != nil {
			s.segment = -1
			return nil, err
		}
	}

	last := s.index.start + s.head.skip + min((number+1)*segment, s.Frames())
	skip := int(position-s.from) * s.head.channels
	return s.out[skip:min(len(s.out), skip+int(last-position)*s.head.channels)], nil
}

// end returns the position after the decoded frames.
func (s *Source) end() int64 { return s.from + int64(len(s.out)/s.head.channels) }

// begin starts a new decoder for a segment.
func (s *Source) begin(number int64) {
	s.segment, s.decoder, s.packet = number, nil, 0
	s.budget = maxDecoded
	s.from, s.out = s.index.lead(s.head, number), s.out[:0]
	m := s.index.marks[min(number/s.index.step, int64(len(s.index.marks))-1)]
	s.timeline.restart(m)
	s.at = m.from
}

// decode decodes the next packet into out. If packets are missing, it adds silence.
func (s *Source) decode() error {
	end := s.end()
	for {
		packet, err := s.next()
		if err != nil {
			return err
		}
		frames := int64(maxFrames) // at the end of the file, silence follows
		from := end
		if packet != nil {
			frames, from = int64(duration(packet)), s.at
			s.at += frames
		}
		if packet != nil && (s.at <= end || from >= s.timeline.at) {
			continue // not needed, or cut off
		}

		s.from, s.out = end, s.out[:0]
		if gap := from - end; gap > 0 { // the packet is decoded after the silence
			s.at -= frames
			s.packet--
			s.silence(min(gap, maxFrames))
			return nil
		}
		if packet == nil {
			s.silence(frames)
			return nil
		}

		s.play(packet, int(frames))
		s.from = from
		s.cut()
		return nil
	}
}

// next returns the next packet, whose position is s.at. At the end of the file, it returns nil.
func (s *Source) next() ([]byte, error) {
	for s.packet >= len(s.timeline.packets) {
		if _, err := s.timeline.page(); errors.Is(err, io.EOF) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		s.packet, s.at = 0, s.timeline.from
	}
	s.packet++
	return s.timeline.packets[s.packet-1], nil
}

// cut removes decoded frames that lie after the end of the page. The last packet of a file may have
// such frames.
func (s *Source) cut() {
	keep := max(0, s.timeline.at-s.from)
	s.out = s.out[:min(int64(len(s.out)), keep*int64(s.head.channels))]
}

// silence sets out to silent frames.
func (s *Source) silence(frames int64) {
	s.out = s.out[:frames*int64(s.head.channels)]
	clear(s.out)
}

// play decodes a packet into out. A packet that cannot be decoded, or that exceeds the budget of
// its segment, becomes silence. The budget limits the work for a file whose pages end long before
// their packets.
func (s *Source) play(packet []byte, frames int) {
	s.silence(int64(frames))
	if s.budget -= int64(frames); s.budget < 0 {
		return
	}

	n, err := s.try(packet)
	if err != nil {
		s.decoder = nil
		clear(s.out)
		return
	}

	clear(s.out[min(n*s.head.channels, len(s.out)):])
	if s.head.gain != 1 {
		for i, v := range s.out {
			louder := math.Round(float64(v) * s.head.gain)
			s.out[i] = int16(min(max(louder, math.MinInt16), math.MaxInt16))
		}
	}
}

// try decodes a packet. Uploads may be hostile, so a panic of the decoder counts as an error.
func (s *Source) try(packet []byte) (n int, err error) {
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
	return s.decoder.DecodeToInt16(packet, s.out)
}
