package record

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/selvage/selvage/calls"
)

// A sideReader reads the audio of one side as continuous samples. The position of a sample is its
// time in the recording, including pauses. A sideReader reads the spool as needed, and buffers about a
// second of audio.
type sideReader struct {
	in      *reader
	side    calls.Side
	plan    *plan
	tracker tracker
	decoder decoder
	ended   bool // the reader has reached the end of the spool

	queue []packet // packets waiting for earlier packets; sorted by place
	free  [][]byte // unused payload buffers
	last  place    // place of the last decoded packet
	next  int64    // timestamp at the end of the last decoded packet

	decoded time.Duration // total length of all decoded packets
	arrived time.Duration // when the latest of these packets arrived

	at      int64   // position of the pending silence and samples, in frames
	silence int64   // pending frames of silence, returned before samples
	samples []int16 // pending samples
	buf     []int16
}

// A packet is queued at its place until the packets before it have arrived.
type packet struct {
	place   place
	codec   codec
	payload []byte
}

// queued is the number of packets that wait in the queue, in case earlier packets arrive. Packets
// usually contain 20 ms of audio, so these packets last a second.
const queued = 50

// read fills dst with the next samples. After the last packet, it returns silence.
func (l *sideReader) read(dst []int16) error {
	for len(dst) > 0 {
		switch {
		case l.silence > 0:
			n := min(int64(len(dst)), l.silence)
			clear(dst[:n])
			dst = dst[n:]
			l.silence -= n
			l.at += n
		case len(l.samples) > 0:
			n := copy(dst, l.samples)
			dst = dst[n:]
			l.samples = l.samples[n:]
			l.at += int64(n)
		default:
			p, ok, err := l.nextPacket()
			if err != nil {
				return err
			}
			if !ok {
				l.silence = int64(len(dst))
				continue
			}

			l.decodePacket(p)
			l.free = append(l.free, p.payload)
		}
	}
	return nil
}

// nextPacket returns the next packet in the order of sending. ok is false after the last packet.
func (l *sideReader) nextPacket() (p packet, ok bool, err error) {
	for len(l.queue) <= queued && !l.ended {
		if err := l.receive(); err != nil {
			return packet{}, false, err
		}
	}
	if len(l.queue) == 0 {
		return packet{}, false, nil
	}
	p = l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	return p, true, nil
}

// receive reads an entry. If the entry is a packet of this side, receive queues it. It drops
// repeated packets, and packets that arrive after later packets were decoded.
func (l *sideReader) receive() error {
	e, err := l.in.next()
	if errors.Is(err, io.EOF) {
		l.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	if e.kind != packetKind || e.side != l.side {
		return nil
	}

	at, ok := l.tracker.place(&e)
	if !ok || at.compare(l.last) <= 0 {
		return nil
	}

	i, twice := slices.BinarySearchFunc(l.queue, at, func(p packet, at place) int { return p.place.compare(at) })
	if twice {
		return nil
	}
	var payload []byte
	if n := len(l.free); n > 0 {
		payload, l.free = l.free[n-1][:0], l.free[:n-1]
	}
	l.queue = slices.Insert(l.queue, i, packet{
		place:   at,
		codec:   e.codec,
		payload: append(payload, e.payload...),
	})
	return nil
}

// compare orders places by the time of sending.
func (p place) compare(other place) int {
	if p.segment != other.segment {
		return p.segment - other.segment
	}
	return int(p.seq - other.seq)
}

// mayDecode reports whether the limit of the side permits decoding the packet. The limit is the
// time that has passed, plus a quarter for a fast clock, plus a burst. Senders exceed it if their
// packets overlap, or last longer than the time between them.
func (l *sideReader) mayDecode(p packet) bool {
	l.arrived = max(l.arrived, p.place.arrived)
	return l.decoded <= l.arrived+l.arrived/4+maxLeap
}

// count counts a packet that was decoded to the given number of samples. A packet that could not be
// decoded counts as the longest possible packet.
func (l *sideReader) count(samples int) {
	length := time.Duration(samples) * time.Second / time.Duration(l.plan.rate)
	if samples == 0 {
		length = maxOpus * time.Millisecond
	}
	l.decoded += length
}

// decodePacket decodes a packet and appends its samples at its place.
func (l *sideReader) decodePacket(p packet) {
	if !l.mayDecode(p) {
		return
	}
	if p.place.segment != l.last.segment {
		l.decoder.reset()
	}
	follows := p.place.segment == l.last.segment && p.place.rtp == l.next
	l.buf = l.decoder.decode(l.buf[:0], p.codec, p.payload, l.plan.rate)
	l.count(len(l.buf))
	l.samples = l.buf
	l.last = p.place
	l.next = p.place.rtp + int64(len(l.samples))*p.codec.clockRate()/int64(l.plan.rate)

	l.align(l.plan.toFrames(l.plan.sides[l.side].at(p.place))-l.at, follows)
}

// align corrects off, the difference between the place of the samples and the number of frames
// before them.
//
// If the samples do not follow the previous samples, align inserts silence. Otherwise, the
// difference comes from clock drift or its correction. Then, align adds or removes a few inaudible
// samples at a time until the samples are in their place. It corrects only large differences in one
// step.
func (l *sideReader) align(off int64, follows bool) {
	n, rate := int64(len(l.samples)), int64(l.plan.rate)
	switch {
	case off > 0 && !follows, off > rate/25:
		l.silence = off
	case off < -rate/2:
		l.samples = l.samples[min(-off, n):]
	case off > rate/1000:
		l.stretch(n + min(off, n/64))
	case off < -rate/1000:
		l.stretch(n - min(-off, n/32))
	}
}

// stretch changes the number of samples to n by linear interpolation.
func (l *sideReader) stretch(n int64) {
	old := int64(len(l.samples))
	if n == old || n < 2 || old < 2 {
		return
	}
	out := make([]int16, n)
	for i := range out {
		at := int64(i) * (old - 1) * 256 / (n - 1)
		whole, part := at/256, at%256
		next := min(whole+1, old-1)
		out[i] = int16((int64(l.samples[whole])*(256-part) + int64(l.samples[next])*part) / 256)
	}
	l.samples = out
}
