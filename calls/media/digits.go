package media

import (
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

const (
	maxDigits   = 64 // pending digits
	digitStep   = 20 * time.Millisecond
	digitSteps  = 5 // a digit lasts 100 ms
	digitEnds   = 3 // the end is sent three times (RFC 4733, section 2.5.1.4)
	digitPause  = 80 * time.Millisecond
	digitVolume = 10 // -10 dBm0
)

// keys lists the digits in the order of their event codes (RFC 4733, section 3.2).
const keys = "0123456789*#ABCD"

// pressed reads a client's telephone events, and finds the keys that the client presses. The caller
// holds the lock of the client's transport.
type pressed struct {
	any  bool
	ssrc uint32 // stream of the last event
	last uint32 // timestamp of the last event
}

// lateEvent is how old a packet of an earlier event may be, as a difference of timestamps. This is six
// seconds at the clock rate of phones. A packet that seems older belongs to a restarted stream.
const lateEvent = 48000

// put handles a packet of a telephone event in the stream ssrc. All packets of an event have the same
// timestamp, and the first one that arrives counts. Packets of earlier events may arrive late. The
// timestamps of a new stream are not related to those of the earlier stream.
func (p *pressed) put(l *leg, ssrc, at uint32, payload []byte) {
	if len(payload) < 4 || int(payload[0]) >= len(keys) {
		return
	}
	isSameStream := p.any && p.ssrc == ssrc
	if isSameStream && p.last-at < lateEvent {
		return
	}
	*p = pressed{any: true, ssrc: ssrc, last: at}
	l.reporter.watcher.Pressed(keys[payload[0]])
}

// A digitQueue holds the digits to be sent to the linked leg, one after the other.
type digitQueue struct {
	mu      sync.Mutex
	waiting []byte // events
	running bool
}

// SendDigits implements calls.Media.
func (l *leg) SendDigits(digits string) {
	d := &l.digits
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, digit := range strings.ToUpper(digits) {
		event := strings.IndexRune(keys, digit)
		if event >= 0 && len(d.waiting) < maxDigits {
			d.waiting = append(d.waiting, byte(event))
		}
	}
	if d.running || len(d.waiting) == 0 {
		return
	}

	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if !l.closed.Load() {
		d.running = true
		l.engine.group.Go(l.runDigits)
	}
}

// next removes and returns the next event. If no event waits, it marks the queue as stopped.
func (d *digitQueue) next() (event byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		d.running = false
		return 0, false
	}
	event = d.waiting[0]
	d.waiting = d.waiting[1:]
	return event, true
}

// runDigits calls sendWaiting. A panic ends only the leg.
func (l *leg) runDigits() {
	defer func() { l.engine.handlePanic(l, recover()) }()
	l.sendWaiting()
}

// sendWaiting sends the waiting digits.
func (l *leg) sendWaiting() {
	w := l.engine.newWorker()
	for {
		event, ok := l.digits.next()
		if !ok {
			return
		}
		if to := l.audioDestination(); to != nil {
			to.out.inject(func() { ok = l.sendDigit(w, &to.out, event) })
		}
		if !ok {
			return // the leg was closed
		}
	}
}

// audioDestination returns the section that receives the client's audio, or nil.
func (l *leg) audioDestination() *section {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if s := l.liveSection(calls.Audio, 0); s != nil {
		if r := s.route.Load(); r != nil {
			return r.to
		}
	}
	return nil
}

// sendDigit sends one digit and the pause after it. It returns false if the leg was closed.
func (l *leg) sendDigit(w *worker, out *sender, event byte) bool {
	start := time.Now()
	at := out.timestampAt(start, out.clock())
	ticker := time.NewTicker(digitStep)
	defer ticker.Stop()

	for step := 1; step <= digitSteps+int(digitPause/digitStep); step++ {
		select {
		case <-l.done:
			return false
		case <-ticker.C:
		}
		switch {
		case step < digitSteps:
			out.sendDigitEvent(w, event, start, at, step, false)
		case step == digitSteps:
			for range digitEnds {
				out.sendDigitEvent(w, event, start, at, step, true)
			}
		}
	}
	return true
}

// clock returns the clock rate of the stream's first codec.
func (out *sender) clock() uint32 {
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.client.clock
}

// timestampAt returns the timestamp that the stream has at the given time, for a codec with the given
// clock rate.
func (out *sender) timestampAt(at time.Time, clock uint32) uint32 {
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.nextTime(at, clock)
}

// sendDigitEvent sends a packet of a telephone event that began at start (RFC 4733, section 2.3).
func (out *sender) sendDigitEvent(w *worker, event byte, start time.Time, at uint32, step int, end bool) {
	out.mu.Lock()
	defer out.mu.Unlock()
	codec, ok := out.client.format.Named(sdp.Events)
	if out.client.cipher == nil || !ok {
		return
	}

	payload := []byte{event, digitVolume}
	if end {
		payload[1] |= 0x80
	}
	duration := time.Duration(step) * digitStep
	payload = binary.BigEndian.AppendUint16(payload, uint16(duration.Seconds()*float64(codec.Clock)))
	p := generatedPacket{
		payloadType: codec.Type,
		marker:      step == 1, // the first packet of the event
		timestamp:   at,
		payload:     payload,
	}

	// All packets of an event carry its start as their timestamp, so the stream continues from
	// there.
	out.sendGenerated(w, p, start)
}
