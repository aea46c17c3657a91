package media_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
)

// deadline is how long a test waits for the network.
const deadline = time.Minute

// A client stands for a browser, and is implemented with pion. It has one PeerConnection per media
// section, because pion cannot keep sections of one connection apart.
type client struct {
	t     *testing.T
	api   *webrtc.API
	parts []*part
	leg   calls.Media
	watch *watcher
	audio []webrtc.RTPCodecParameters
}

// A part is one media section of a client.
type part struct {
	kind   string
	mid    string
	pc     *webrtc.PeerConnection
	track  *webrtc.TrackLocalStaticRTP
	sender *webrtc.RTPSender
	up     chan struct{} // closed when the part is connected

	mu  sync.Mutex
	seq uint16
	ts  uint32

	level []byte // audio level extension of sent packets, or nil

	packets chan *rtp.Packet   // received packets
	reports chan []rtcp.Packet // received reports about the media that the part sends
	remote  chan *webrtc.TrackRemote
}

// levelID is the id of the audio level extension, the only extension that clients use.
const levelID = 1

// A setup holds options for a client.
type setup struct {
	codecs  []webrtc.RTPCodecParameters // audio codecs; nil means Opus with telephone events
	network webrtc.NetworkType          // 0 means UDP over IPv4
}

var (
	opus = webrtc.RTPCodecParameters{
		PayloadType: 111,
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType:  webrtc.MimeTypeOpus,
			ClockRate: 48000,
			Channels:  2,
		},
	}
	events = webrtc.RTPCodecParameters{
		PayloadType:        110,
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: "audio/telephone-event", ClockRate: 48000},
	}
	pcmu = webrtc.RTPCodecParameters{
		PayloadType:        0,
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000},
	}
	vp8 = webrtc.RTPCodecParameters{
		PayloadType: 96,
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType:  webrtc.MimeTypeVP8,
			ClockRate: 90000,
			RTCPFeedback: []webrtc.RTCPFeedback{
				{Type: "goog-remb"},
				{Type: "nack"},
				{Type: "nack", Parameter: "pli"},
				{Type: "ccm", Parameter: "fir"},
			},
		},
	}
)

// newEngine returns an engine on loopback that is closed at the end of the test.
func newEngine(t *testing.T, change ...func(*media.Config)) *media.Engine {
	t.Helper()
	cfg := media.Config{Listen: "127.0.0.1:0"}
	for _, f := range change {
		f(&cfg)
	}

	e, err := media.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// newClient returns a client that sends and receives the given kinds.
func newClient(t *testing.T, s setup, kinds ...string) *client {
	t.Helper()
	m := &webrtc.MediaEngine{}
	if s.codecs == nil {
		s.codecs = []webrtc.RTPCodecParameters{opus, events}
	}
	for _, c := range s.codecs {
		must(t, m.RegisterCodec(c, webrtc.RTPCodecTypeAudio))
	}
	must(t, m.RegisterCodec(vp8, webrtc.RTPCodecTypeVideo))
	audioLevel := webrtc.RTPHeaderExtensionCapability{URI: "urn:ietf:params:rtp-hdrext:ssrc-audio-level"}
	must(t, m.RegisterHeaderExtension(audioLevel, webrtc.RTPCodecTypeAudio))
	if s.network == 0 {
		s.network = webrtc.NetworkTypeUDP4
	}

	settings := webrtc.SettingEngine{LoggerFactory: quiet{}}
	settings.SetIncludeLoopbackCandidate(true)
	must(t, settings.SetAnsweringDTLSRole(webrtc.DTLSRoleClient)) // as browsers do
	settings.SetNetworkTypes([]webrtc.NetworkType{s.network})
	settings.SetIPFilter(func(ip net.IP) bool { return ip.IsLoopback() })
	api := webrtc.NewAPI(
		webrtc.WithMediaEngine(m),
		webrtc.WithInterceptorRegistry(&interceptor.Registry{}),
		webrtc.WithSettingEngine(settings),
	)
	c := &client{t: t, watch: newWatcher(), audio: s.codecs, api: api}
	for _, kind := range kinds {
		c.add(kind, true)
	}
	t.Cleanup(c.close)
	return c
}

// quiet discards pion's logs.
type quiet struct{}

func (quiet) NewLogger(string) logging.LeveledLogger {
	return logging.NewDefaultLeveledLoggerForScope("", logging.LogLevelDisabled, nil)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *client) close() {
	for _, p := range c.parts {
		_ = p.pc.Close()
	}
}

// add adds a section. If opens is true, the client offers the section. Otherwise, it answers.
func (c *client) add(kind string, opens bool) *part {
	c.t.Helper()
	pc, err := c.api.NewPeerConnection(webrtc.Configuration{})
	must(c.t, err)
	p := &part{
		kind:    kind,
		mid:     fmt.Sprint(len(c.parts)),
		pc:      pc,
		up:      make(chan struct{}),
		packets: make(chan *rtp.Packet, 4096),
		reports: make(chan []rtcp.Packet, 256),
		remote:  make(chan *webrtc.TrackRemote, 4),
	}

	var once sync.Once
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		if s == webrtc.PeerConnectionStateConnected {
			once.Do(func() { close(p.up) })
		}
	})
	pc.OnTrack(func(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
		p.remote <- t
		go p.readReports(r.ReadRTCP)
		for {
			packet, _, err := t.ReadRTP()
			if err != nil {
				return
			}
			select {
			case p.packets <- packet:
			default:
			}
		}
	})

	c.parts = append(c.parts, p)
	if opens {
		p.send(c.t, c.codec(kind))
	}
	return p
}

// codec returns the codec that the client's tracks of the given kind use.
func (c *client) codec(kind string) webrtc.RTPCodecCapability {
	if kind == "video" {
		return vp8.RTPCodecCapability
	}
	return c.audio[0].RTPCodecCapability
}

// send makes the part send a track.
func (p *part) send(t *testing.T, codec webrtc.RTPCodecCapability) {
	t.Helper()
	var err error
	p.track, err = webrtc.NewTrackLocalStaticRTP(codec, p.kind, "client")
	must(t, err)
	p.sender, err = p.pc.AddTrack(p.track)
	must(t, err)
	go p.readReports(p.sender.ReadRTCP)
}

// readReports passes the reports that read returns to p.reports, until the connection ends.
func (p *part) readReports(read func() ([]rtcp.Packet, interceptor.Attributes, error)) {
	for {
		packets, _, err := read()
		if err != nil {
			return
		}
		select {
		case p.reports <- packets:
		default:
		}
	}
}

// connected waits until all parts are connected.
func (c *client) connected() {
	c.t.Helper()
	for _, p := range c.parts {
		select {
		case <-p.up:
		case <-time.After(deadline):
			c.t.Fatalf("%s is %v, want connected", p.kind, p.pc.ConnectionState())
		}
	}
}

// say sends a packet with a payload that the receiver can recognize.
func (p *part) say(t *testing.T, payload string) {
	t.Helper()
	p.mu.Lock()
	p.seq++
	p.ts += 960
	header := rtp.Header{Version: 2, SequenceNumber: p.seq, Timestamp: p.ts, Marker: true}
	packet := &rtp.Packet{Header: header, Payload: []byte(payload)}
	if p.level != nil {
		must(t, packet.SetExtension(levelID, p.level))
	}
	p.mu.Unlock()
	must(t, p.track.WriteRTP(packet))
}

// said returns how many packets the part has sent.
func (p *part) said() uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq
}

// hear sends a payload from one part until the other part has received it, and returns the packet.
// The first packets may be lost while the receiver is still getting its keys.
func hear(t *testing.T, from, to *part, payload string) *rtp.Packet {
	t.Helper()
	end := time.After(deadline)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()

	for {
		select {
		case p := <-to.packets:
			if string(p.Payload) == payload {
				return p
			}
		case <-ticker.C:
			from.say(t, payload)
		case <-end:
			t.Fatalf("the payload %q of the %s did not arrive", payload, from.kind)
		}
	}
}

// A watcher records events.
type watcher struct {
	connected chan calls.Path
	lost      chan struct{}
	talking   chan bool
	failed    chan error
}

func newWatcher() *watcher {
	return &watcher{
		connected: make(chan calls.Path, 16),
		lost:      make(chan struct{}, 16),
		talking:   make(chan bool, 64),
		failed:    make(chan error, 16),
	}
}

func (w *watcher) Connected(p calls.Path) { w.connected <- p }
func (w *watcher) Lost()                  { w.lost <- struct{}{} }
func (w *watcher) Talking(talking bool)   { w.talking <- talking }
func (w *watcher) Pressed(byte)           {}
func (w *watcher) Failed(err error)       { w.failed <- err }
