package media_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// update sends a new offer from the client and applies the answer.
func (c *client) update() string {
	c.t.Helper()
	answer, err := c.leg.Update(c.offer())
	if err != nil {
		c.t.Fatalf("Update: %v", err)
	}
	c.take(webrtc.SDPTypeAnswer, answer)
	return answer
}

func TestAddVideo(t *testing.T) {
	e := newEngine(t)
	c := newClient(t, setup{}, "audio")
	c.call(e)
	link(c, c)
	c.connected()
	hear(t, c.parts[0], c.parts[0], "before")

	c.add("video", true)
	c.update()
	c.connected()
	hear(t, c.parts[1], c.parts[1], key)
	hear(t, c.parts[0], c.parts[0], "after")
	if got, want := c.leg.Kinds(), []calls.Kind{calls.Audio, calls.Video}; !slices.Equal(got, want) {
		t.Errorf("Kinds() = %v, want %v", got, want)
	}
}

func TestDirections(t *testing.T) {
	tests := []struct {
		offered, answered string
		echoes            bool // the client's audio comes back
	}{
		{"sendrecv", "sendrecv", true},
		{"sendonly", "recvonly", false},
		{"recvonly", "sendonly", false},
		{"inactive", "inactive", false},
	}
	e := newEngine(t)
	c := newClient(t, setup{}, "audio")
	c.call(e)
	link(c, c)
	c.connected()
	hear(t, c.parts[0], c.parts[0], "hello")

	offer := c.offer()
	for _, tt := range tests {
		answer, err := c.leg.Update(strings.Replace(offer, "a=sendrecv", "a="+tt.offered, 1))
		if err != nil {
			t.Fatalf("Update to %s: %v", tt.offered, err)
		}
		if !strings.Contains(answer, "\r\na="+tt.answered+"\r\n") {
			t.Errorf("the answer to %s is\n%s\nwant %s", tt.offered, answer, tt.answered)
		}

		payload := "while " + tt.offered
		if tt.echoes {
			hear(t, c.parts[0], c.parts[0], payload)
		} else if c.hears(c.parts[0], payload) {
			t.Errorf("the client hears itself after it offered %s", tt.offered)
		}
	}
}

// hears reports whether a payload that the part sends returns to it within a short time. A busy
// machine may need longer, so false does not prove that the payload is lost.
func (c *client) hears(p *part, payload string) bool {
	c.t.Helper()
	for len(p.packets) > 0 {
		<-p.packets
	}

	end := time.After(250 * time.Millisecond)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case packet := <-p.packets:
			if string(packet.Payload) == payload {
				return true
			}
		case <-ticker.C:
			p.say(c.t, payload)
		case <-end:
			return false
		}
	}
}

func TestSwitches(t *testing.T) {
	e := newEngine(t)
	c := newClient(t, setup{}, "audio")
	c.call(e)
	link(c, c)
	c.connected()
	p := c.parts[0]

	tests := []struct {
		name    string
		off, on func()
	}{
		{"mute", func() { c.leg.Mute(calls.Audio, true) }, func() { c.leg.Mute(calls.Audio, false) }},
		{"deafen", func() { c.leg.Deafen(true) }, func() { c.leg.Deafen(false) }},
		{"hold", func() { c.leg.Link(calls.Audio, nil) }, func() { c.leg.Link(calls.Audio, c.leg) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began, said := time.Now(), p.said()
			before := hear(t, p, p, "before "+tt.name)
			heard := time.Now()
			passing := p.said() - said // packets sent while the switch lets them pass
			tt.off()
			if c.hears(p, "during "+tt.name) {
				t.Errorf("%s lets packets pass", tt.name)
			}

			said = p.said()
			waitFor(t, "all packets to arrive", func() bool { return arrived(e) >= uint64(said) })
			shortest := time.Since(heard)
			tt.on()
			after := hear(t, p, p, "after "+tt.name)
			passing += p.said() - said
			longest := time.Since(began)

			// Dropped packets leave no gap, and the timestamp advances by the time that passed.
			if n := after.SequenceNumber - before.SequenceNumber; n == 0 || n > passing {
				t.Errorf("the sequence number advances by %d, want 1 to %d", n, passing)
			}
			passed := time.Duration(after.Timestamp-before.Timestamp) * time.Second / 48000
			if passed < shortest-20*time.Millisecond || passed > longest+20*time.Millisecond {
				t.Errorf("the timestamp advances by %v, want %v to %v", passed, shortest, longest)
			}
			if after.SSRC != before.SSRC {
				t.Errorf("the SSRC changes from %d to %d, want one SSRC", before.SSRC, after.SSRC)
			}
		})
	}
}

func TestSourceChange(t *testing.T) {
	e := newEngine(t)
	alice, bob := talk(t, e, "audio")
	carol := newClient(t, setup{}, "audio")
	carol.call(e)
	carol.connected()

	said := func() uint16 { return alice.parts[0].said() + carol.parts[0].said() }
	saidBefore := said()
	first := hear(t, alice.parts[0], bob.parts[0], "alice")
	carol.leg.Link(calls.Audio, bob.leg)
	second := hear(t, carol.parts[0], bob.parts[0], "carol")
	alice.leg.Link(calls.Audio, bob.leg)
	third := hear(t, alice.parts[0], bob.parts[0], "alice again")
	if first.SSRC != second.SSRC || second.SSRC != third.SSRC {
		t.Errorf("SSRCs are %d, %d and %d, want a single SSRC", first.SSRC, second.SSRC, third.SSRC)
	}

	longest := said() - saidBefore
	if n := second.SequenceNumber - first.SequenceNumber; n == 0 || n > longest {
		t.Errorf("from alice to carol, the sequence number advances by %d, want 1 to %d", n, longest)
	}
	if n := third.SequenceNumber - second.SequenceNumber; n == 0 || n > longest {
		t.Errorf("from carol to alice, the sequence number advances by %d, want 1 to %d", n, longest)
	}
}

func TestRenew(t *testing.T) {
	e := newEngine(t)
	alice, bob := talk(t, e, "audio")
	hear(t, alice.parts[0], bob.parts[0], "before")
	<-alice.watch.connected

	again := newClient(t, setup{}, "audio")
	answer, err := alice.leg.Renew(again.offer())
	must(t, err)
	again.take(webrtc.SDPTypeAnswer, answer)
	again.connected()
	hear(t, again.parts[0], bob.parts[0], "after")
	hear(t, bob.parts[0], again.parts[0], "welcome back")
	select {
	case <-alice.watch.connected:
	case <-time.After(deadline):
		t.Error("Connected was not called after Renew")
	}
}

func TestRestart(t *testing.T) {
	e := newEngine(t)
	c := newClient(t, setup{}, "audio")
	c.call(e)
	link(c, c)
	c.connected()
	hear(t, c.parts[0], c.parts[0], "before")

	before, _ := split(c.parts[0].pc.LocalDescription().SDP)
	o, err := c.parts[0].pc.CreateOffer(&webrtc.OfferOptions{ICERestart: true})
	must(t, err)
	answer, err := c.leg.Update("v=0\r\n" + c.parts[0].gather(t, o))
	must(t, err)
	c.take(webrtc.SDPTypeAnswer, answer)
	if strings.Contains(before, attribute(answer, "ice-ufrag")) {
		t.Error("the answer to an ICE restart has the credentials from before, want new ones")
	}
	hear(t, c.parts[0], c.parts[0], "after")
}

func TestUpdateFails(t *testing.T) {
	e := newEngine(t)
	c := newClient(t, setup{}, "audio")
	c.call(e)
	link(c, c)
	c.connected()
	for name, offer := range map[string]string{
		"no description":    "hello",
		"nothing in common": "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\n",
		"no credentials":    "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n",
	} {
		if _, err := c.leg.Update(offer); !errors.Is(err, problem.Invalid) {
			t.Errorf("Update of %s = %v, want %v", name, err, problem.Invalid)
		}
	}
	hear(t, c.parts[0], c.parts[0], "still here")
}

func TestCodecs(t *testing.T) {
	e := newEngine(t)
	alice := newClient(t, setup{codecs: []webrtc.RTPCodecParameters{pcmu}}, "audio")
	bob := newClient(t, setup{codecs: []webrtc.RTPCodecParameters{pcmu, opus}})
	alice.call(e)
	bob.ring(e, alice)
	link(alice, bob)
	link(bob, alice)
	alice.connected()
	bob.connected()
	if p := hear(t, alice.parts[0], bob.parts[0], "hello"); p.PayloadType != 0 {
		t.Errorf("the payload type is %d, want 0", p.PayloadType)
	}
	hear(t, bob.parts[0], alice.parts[0], "hello")
}
