package media_test

import (
	"strings"
	"testing"

	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
)

// split splits a description into its head and its sections, without the bundle attribute.
func split(sdp string) (head string, sections []string) {
	parts := strings.Split(strings.TrimSuffix(sdp, "\r\n"), "\r\nm=")
	for line := range strings.Lines(parts[0] + "\r\n") {
		if !strings.HasPrefix(line, "a=group") {
			head += line
		}
	}
	for _, s := range parts[1:] {
		sections = append(sections, "m="+s+"\r\n")
	}
	return head, sections
}

// attribute returns the value of the first attribute with this name, or "" if there is none.
func attribute(text, name string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "a="+name); ok {
			return strings.TrimPrefix(v, ":")
		}
	}
	return ""
}

// rename replaces the mid of a section.
func rename(section, mid string) string {
	return strings.Replace(section, "a=mid:"+attribute(section, "mid"), "a=mid:"+mid, 1)
}

// gather sets the local description of a part and waits for its candidates. It returns the section
// with the part's mid.
func (p *part) gather(t *testing.T, d webrtc.SessionDescription) string {
	t.Helper()
	done := webrtc.GatheringCompletePromise(p.pc)
	must(t, p.pc.SetLocalDescription(d))
	<-done
	head, sections := split(p.pc.LocalDescription().SDP)
	if f := attribute(head, "fingerprint"); f != "" && attribute(sections[0], "fingerprint") == "" {
		sections[0] += "a=fingerprint:" + f + "\r\n"
	}
	return rename(sections[0], p.mid)
}

// offer returns an offer with one section for each of the client's parts, in the order of c.parts.
func (c *client) offer() string {
	c.t.Helper()
	text := "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
	for _, p := range c.parts {
		o, err := p.pc.CreateOffer(nil)
		must(c.t, err)
		text += p.gather(c.t, o)
	}
	return text
}

// take sets the remote description of each part that has a section in text, unless the section is
// rejected.
func (c *client) take(kind webrtc.SDPType, text string) {
	c.t.Helper()
	head, sections := split(text)
	for _, s := range sections {
		for _, p := range c.parts {
			if p.mid != attribute(s, "mid") {
				continue
			}
			if strings.Contains(s, " 0 UDP/TLS") {
				continue
			}
			own := "0"
			if d := p.pc.LocalDescription(); d != nil {
				_, ours := split(d.SDP)
				own = attribute(ours[0], "mid")
			}
			must(c.t, p.pc.SetRemoteDescription(webrtc.SessionDescription{
				Type: kind,
				SDP:  head + "a=group:BUNDLE " + own + "\r\n" + rename(s, own),
			}))
		}
	}
}

// call opens a leg with an offer from the client.
func (c *client) call(e *media.Engine) {
	c.t.Helper()
	leg, answer, err := e.Answer(c.watch, c.offer(), calls.Terms{})
	if err != nil {
		c.t.Fatalf("Answer: %v", err)
	}
	c.leg = leg
	c.take(webrtc.SDPTypeAnswer, answer)
}

// ring opens a leg to the client: the engine offers the media of other's leg, and the client
// accepts.
func (c *client) ring(e *media.Engine, other *client) {
	c.t.Helper()
	leg, offer, err := e.Offer(c.watch, other.leg, calls.Terms{})
	if err != nil {
		c.t.Fatalf("Offer: %v", err)
	}
	c.leg = leg
	if err := leg.Accept(c.answer(offer)); err != nil {
		c.t.Fatalf("Accept: %v", err)
	}
}

// answer adds a part for each section of an offer, and returns the answer.
func (c *client) answer(offer string) string {
	c.t.Helper()
	_, sections := split(offer)
	for _, s := range sections {
		kind, _, _ := strings.Cut(strings.TrimPrefix(s, "m="), " ")
		c.add(kind, false)
	}

	c.take(webrtc.SDPTypeOffer, offer)
	text := "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
	for _, p := range c.parts {
		p.send(c.t, c.codec(p.kind))
		a, err := p.pc.CreateAnswer(nil)
		must(c.t, err)
		text += p.gather(c.t, a)
	}
	return text
}
