package phone

import (
	"time"

	"github.com/google/uuid"
	"github.com/pion/rtp"
)

// PerSecond is how many packets per second a speaking phone sends.
const PerSecond = 50

// Speak sends a tone in real time until the call is closed. hz must divide 4000, and the phone must
// use G711.
func (c *Call) Speak(hz int) {
	const packet = 8000 / PerSecond
	go func() {
		tick := time.NewTicker(time.Second / PerSecond)
		defer tick.Stop()
		sent := 0
		for began := time.Now(); ; {
			for due := int(time.Since(began) * PerSecond / time.Second); sent < due; sent++ {
				wave := make([]byte, packet)
				for i := range wave {
					// A loud sample; the top bit is its sign.
					wave[i] = 0x20 | byte((sent*packet+i)*hz/4000%2)<<7
				}
				c.Say(string(wave))
			}
			select {
			case <-tick.C:
			case <-c.done:
				return
			}
		}
	}()
}

// Spoken returns how many packets the phone has sent.
func (c *Call) Spoken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.seq)
}

// Say sends a packet.
func (c *Call) Say(payload string) {
	c.phone.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	if c.line != nil {
		c.must(c.line.Send(c.seq, payload))
		return
	}

	c.must(c.track.WriteRTP(&rtp.Packet{
		Header: rtp.Header{
			Version:        2,
			SequenceNumber: c.seq,
			Marker:         true,
			Timestamp:      uint32(c.seq) * c.phone.codec.ClockRate / PerSecond,
		},
		Payload: []byte(payload),
	}))
}

// WaitHeard waits until the phone hears a payload.
func (c *Call) WaitHeard(payload string) {
	c.phone.t.Helper()
	for end := time.After(patience); ; {
		select {
		case heard := <-c.heard:
			if heard == payload {
				return
			}
		case <-end:
			c.phone.t.Fatalf("the phone did not hear the payload of %d bytes", len(payload))
		}
	}
}

// WaitSound waits until the phone hears a loud packet or, if loud is false, a silent one. The phone
// must use G.711.
func (c *Call) WaitSound(loud bool) {
	c.phone.t.Helper()
	for end := time.After(patience); ; {
		select {
		case heard := <-c.heard:
			if n := loudSamples(heard); loud && n > len(heard)/4 || !loud && n == 0 {
				return
			}
		case <-end:
			c.phone.t.Fatalf("the phone heard no packet with loud = %v", loud)
		}
	}
}

// loudSamples counts the loud samples in a mu-law payload.
func loudSamples(payload string) (n int) {
	for i := range len(payload) {
		if payload[i]&0x7f < 0x40 {
			n++
		}
	}
	return n
}

// HearBoth fails the test unless each of two phones hears the other.
func HearBoth(a, b *Call) {
	a.phone.t.Helper()
	Hear(a, b)
	Hear(b, a)
}

// Hear repeatedly sends a payload from one phone until the other phone hears it. It returns the
// payloads that the other phone heard before this one.
func Hear(from, to *Call) (before []string) {
	to.phone.t.Helper()
	what := uuid.NewString()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for end := time.After(patience); ; {
		select {
		case heard := <-to.heard:
			if heard == what {
				return before
			}
			before = append(before, heard)
		case <-tick.C:
			from.Say(what)
		case <-end:
			to.phone.t.Fatalf("the phone did not hear the other side")
			return nil
		}
	}
}
