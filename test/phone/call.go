package phone

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls/line"
)

// A Call is one phone's side of a call.
type Call struct {
	ID string

	phone  *Phone
	offer  string // the server's offer, if the call is ringing
	pc     *webrtc.PeerConnection
	track  *webrtc.TrackLocalStaticRTP
	line   *line.Line  // carries the audio if the phone is light; nil until it is connected
	heard  chan string // received payloads
	done   chan struct{}
	closed sync.Once

	connected chan struct{} // closed when the line is connected

	answers             chan string // receives the server's descriptions
	answered            chan struct{}
	ended               chan string   // receives the cause of the end
	lost                chan struct{} // closed when the call's node is lost
	answerOnce, endOnce sync.Once
	lostOnce            sync.Once

	mu   sync.Mutex
	node string
	seq  uint16
}

func newCall(p *Phone, id string) *Call {
	return &Call{
		ID:        id,
		phone:     p,
		heard:     make(chan string, 1024),
		answers:   make(chan string, 16),
		answered:  make(chan struct{}),
		ended:     make(chan string, 1),
		lost:      make(chan struct{}),
		done:      make(chan struct{}),
		connected: make(chan struct{}),
	}
}

// Dial calls an address and returns immediately.
func (p *Phone) Dial(to string) *Call {
	p.t.Helper()
	return p.invite(uuid.NewString(), map[string]any{"destination_number": to, "audio": true})
}

// TryDial calls an address with an offer that the server may refuse. It returns the code of the
// response.
func (p *Phone) TryDial(to, offer string) string {
	p.t.Helper()
	c := newCall(p, uuid.NewString())
	var result struct{ Code string }
	c.send("verto.invite", map[string]any{"sdp": offer,
		"dialogParams": map[string]any{"callID": c.ID, "destination_number": to}}, &result)
	return result.Code
}

// Attach continues a call whose media was lost, with new media.
func (p *Phone) Attach(lost *Call) *Call {
	p.t.Helper()
	lost.Close()
	return p.invite(lost.ID, map[string]any{"attach": true, "reattaching": true, "audio": true})
}

// invite sends an offer for a new call or a lost one. dialog says which, and whom to call.
func (p *Phone) invite(id string, dialog map[string]any) *Call {
	p.t.Helper()
	c := newCall(p, id)
	p.mu.Lock()
	p.calls[c.ID] = c
	p.mu.Unlock()

	dialog["callID"] = id
	c.verto("verto.invite", map[string]any{"sdp": c.describe(), "dialogParams": dialog})
	if !p.silent {
		go c.acceptAnswer()
	}
	return c
}

// describe returns the phone's own description of its audio. It is an answer to the server's offer
// or, if there is no offer, an offer.
func (c *Call) describe() string {
	c.phone.t.Helper()
	switch {
	case c.phone.silent:
		return silence
	case c.phone.hear != nil:
		return strings.Replace(line.Description(), "opus/48000/2", c.phone.lightCodec(), 1)
	}

	c.open()
	describe := func() (webrtc.SessionDescription, error) { return c.pc.CreateOffer(nil) }
	if c.offer != "" {
		c.must(c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: bundled(c.offer)}))
		describe = func() (webrtc.SessionDescription, error) { return c.pc.CreateAnswer(nil) }
	}

	own, err := describe()
	c.must(err)
	c.gather(own)
	return c.pc.LocalDescription().SDP
}

// acceptAnswer applies the server's description, which arrives before the call is answered.
func (c *Call) acceptAnswer() {
	select {
	case sdp := <-c.answers:
		if c.phone.hear != nil {
			c.openLine(sdp)
			return
		}
		_ = c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: bundled(sdp)})
	case <-time.After(patience):
	}
}

// bundled puts the only section of a description into a group, because pion rejects a description
// without a group.
func bundled(sdp string) string {
	const timing = "t=0 0\r\n"
	return strings.Replace(sdp, timing, timing+"a=group:BUNDLE 0\r\n", 1)
}

// silence is the description that a silent phone sends: of audio that it never sends.
var silence = line.DescriptionFor(strings.TrimSuffix(strings.Repeat("AB:", 32), ":"))

// Answer answers a ringing call.
func (c *Call) Answer() {
	c.phone.t.Helper()
	c.verto("verto.answer", map[string]any{
		"sdp":          c.describe(),
		"dialogParams": map[string]any{"callID": c.ID},
	})
	if c.phone.hear != nil {
		go c.openLine(c.offer)
	}
}

// openLine connects the call's line.
func (c *Call) openLine(description string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := line.Open(ctx, description, c.phone.hear)
	if err != nil {
		c.phone.t.Errorf("connecting the audio of a call: %v", err)
		return
	}
	l.Ticks = c.phone.codec.ClockRate / PerSecond
	c.line = l
	close(c.connected)
}

// Talk calls an address from one phone, and answers the call at the other phone.
func Talk(from, at *Phone, to string) (caller, callee *Call) {
	from.t.Helper()
	caller = from.Dial(to)
	callee = at.WaitRing()
	callee.Answer()
	caller.WaitAnswered()
	callee.WaitAnswered()
	return caller, callee
}

// Hangup ends the call.
func (c *Call) Hangup() {
	c.phone.t.Helper()
	c.bye("NORMAL_CLEARING")
}

// Reject rejects a ringing call in the same way as SDKs.
func (c *Call) Reject() {
	c.phone.t.Helper()
	c.bye("USER_BUSY")
}

func (c *Call) bye(cause string) {
	c.phone.t.Helper()
	c.verto("verto.bye", map[string]any{"cause": cause, "dialogParams": map[string]any{"callID": c.ID}})
}

// Hold puts the call on hold, or resumes it.
func (c *Call) Hold(held bool) {
	c.phone.t.Helper()
	action := map[bool]string{true: "hold", false: "unhold"}[held]
	c.verto("verto.modify", map[string]any{"action": action, "dialogParams": map[string]any{"callID": c.ID}})
}

// Command sends a request about the call with a method other than webrtc.verto.
func (c *Call) Command(method string, params map[string]any) {
	c.phone.t.Helper()
	params["self"] = map[string]string{"call_id": c.ID, "member_id": c.ID, "node_id": c.Node()}
	c.phone.request(method, params, nil)
}

// TryCommand sends a request like Command, and returns the server's error.
func (c *Call) TryCommand(method string, params map[string]any) error {
	params["self"] = map[string]string{"call_id": c.ID, "member_id": c.ID, "node_id": c.Node()}
	return c.phone.try(method, params, nil)
}

// Node returns the node that carries the call, according to the last event about the call.
func (c *Call) Node() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node
}

func (c *Call) setNode(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node = node
}

// verto sends a verto message about the call and ignores the result.
func (c *Call) verto(method string, params map[string]any) {
	c.phone.t.Helper()
	c.send(method, params, nil)
}

// send sends a verto message and decodes its result.
func (c *Call) send(method string, params map[string]any, result any) {
	c.phone.t.Helper()
	c.phone.request("webrtc.verto", map[string]any{
		"callID":  c.ID,
		"node_id": c.Node(),
		"message": map[string]any{"jsonrpc": "2.0", "id": uuid.NewString(), "method": method, "params": params},
	}, result)
}

func (c *Call) must(err error) {
	c.phone.t.Helper()
	if err != nil {
		c.phone.t.Fatalf("%v", err)
	}
}

// These are the codecs that phones support. Each call uses one of them.
var (
	opus = webrtc.RTPCodecParameters{PayloadType: 111,
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}}
	g722 = webrtc.RTPCodecParameters{PayloadType: 9,
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeG722, ClockRate: 8000}}
	g711 = webrtc.RTPCodecParameters{PayloadType: 0,
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000}}
)

// open creates the connection for the audio.
func (c *Call) open() {
	c.phone.t.Helper()
	m := &webrtc.MediaEngine{}
	codec := c.phone.codec
	c.must(m.RegisterCodec(codec, webrtc.RTPCodecTypeAudio))
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetIPFilter(func(ip net.IP) bool { return ip.IsLoopback() })
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	c.must(settings.SetAnsweringDTLSRole(webrtc.DTLSRoleClient)) // browsers use the same role
	api := webrtc.NewAPI(webrtc.WithMediaEngine(m), webrtc.WithInterceptorRegistry(&interceptor.Registry{}),
		webrtc.WithSettingEngine(settings))

	var err error
	c.pc, err = api.NewPeerConnection(webrtc.Configuration{})
	c.must(err)
	c.phone.t.Cleanup(c.Close)
	c.track, err = webrtc.NewTrackLocalStaticRTP(codec.RTPCodecCapability, "audio", "phone")
	c.must(err)
	_, err = c.pc.AddTrack(c.track)
	c.must(err)
	c.pc.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			packet, _, err := t.ReadRTP()
			if err != nil {
				return
			}
			select {
			case c.heard <- string(packet.Payload):
			default:
			}
		}
	})
}

// gather sets the phone's own description and waits until it is complete.
func (c *Call) gather(d webrtc.SessionDescription) {
	c.phone.t.Helper()
	complete := webrtc.GatheringCompletePromise(c.pc)
	c.must(c.pc.SetLocalDescription(d))
	<-complete
}

// Close closes the phone's media connection without notifying the server.
func (c *Call) Close() {
	c.closed.Do(func() {
		close(c.done)
		if c.line != nil {
			c.line.Close()
		}
		if c.pc != nil {
			_ = c.pc.Close()
		}
	})
}
