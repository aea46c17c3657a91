package media

import (
	"math"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/recordings/wav"
)

// A hall is a mixer whose members have fixed keys. Tests call mix themselves.
type hall struct {
	t       testing.TB
	engine  *Engine
	mixer   *mixer
	worker  *worker
	members []*talker
	now     time.Time
}

// A talker is the client of a member.
type talker struct {
	leg    *leg
	at     netip.AddrPort
	sink   *net.UDPConn // receives the audio that the member hears
	seal   *srtp.Context
	open   *srtp.Context
	codec  sdp.Codec
	say    *wav.Encoder
	hear   *wav.Decoder
	pitch  float64 // pitch of the tone that it sends; 0 means silence
	sent   int     // frames sent
	heard  []int16
	buffer [maxPacket]byte
}

func newHall(t testing.TB) *hall {
	t.Helper()
	e, err := open(Config{Listen: "127.0.0.1:0", NoTCP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	encoder, err := wav.NewEncoder("g722")
	if err != nil {
		t.Fatal(err)
	}
	h := &hall{t: t, engine: e, worker: e.newWorker(), now: time.Now()}
	h.mixer = &mixer{engine: e, done: make(chan struct{}), worker: e.newWorker(), encoder: encoder}
	h.worker.from.udp = e.udp
	return h
}

// enter adds a member that sends a tone in a codec.
func (h *hall) enter(codec string, pitch float64) *talker {
	h.t.Helper()
	const profile = srtp.ProtectionProfileAeadAes128Gcm
	sink, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		h.t.Fatal(err)
	}

	h.t.Cleanup(func() { _ = sink.Close() })
	port := uint16(1000 + len(h.members))
	c := &talker{
		sink:  sink,
		at:    netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port),
		pitch: pitch,
		seal:  newContext(h.t, profile),
		open:  newContext(h.t, profile),
		codec: sdp.Codec{Type: 9, Name: codec, Clock: 8000},
	}
	c.say, err = wav.NewEncoder(wavNames[codec])
	if err != nil {
		h.t.Fatal(err)
	}
	c.hear, err = wav.NewDecoder(wavNames[codec])
	if err != nil {
		h.t.Fatal(err)
	}

	l := h.engine.newLeg(nil, calls.Terms{})
	l.voice.Store(&voice{leg: l})
	s := l.newSection(sdp.Section{
		Kind:      "audio",
		Mid:       "0",
		Direction: sdp.SendReceive,
		Codecs:    []sdp.Codec{c.codec},
	}, nil)
	l.sections = []*section{s}
	s.transport.in.ctx = newContext(h.t, profile)
	s.transport.in.rtp = bucket{rate: 1e12, burst: 1e12}
	s.out.setKeys(s.transport, newContext(h.t, profile))
	s.transport.path.Store(&path{udp: h.engine.udp, remote: sink.LocalAddr().(*net.UDPAddr).AddrPort()})
	h.engine.table.claimAddress(c.at, s.transport, time.Now())
	l.voice.Load().reroute()
	c.leg = l
	h.mixer.Add(l)
	h.members = append(h.members, c)
	return c
}

// packet returns the client's next packet, encrypted.
func (c *talker) packet(t testing.TB) []byte {
	t.Helper()
	pcm := make([]int16, frameSamples)
	size := frameSamples
	if c.codec.Name != sdp.G722 {
		size = frameBytes
	}
	for i := range pcm[:size] {
		if c.pitch > 0 {
			seconds := float64(c.sent*size+i) / c.rate()
			pcm[i] = int16(6000 * math.Sin(2*math.Pi*c.pitch*seconds))
		}
	}

	payload := make([]byte, frameBytes)
	c.say.Encode(payload, pcm)
	c.sent++
	header := rtp.Header{
		Version:        2,
		PayloadType:    9,
		SSRC:           7,
		SequenceNumber: uint16(c.sent),
		Timestamp:      uint32(c.sent) * frameBytes,
	}
	plain, err := (&rtp.Packet{Header: header, Payload: payload}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := c.seal.EncryptRTP(nil, plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// rate returns the number of samples per second of the client's codec.
func (c *talker) rate() float64 {
	if c.codec.Name == sdp.G722 {
		return 16000
	}
	return 8000
}

// run makes all clients send a number of frames and mixes them. Frames for which loses returns true
// are not sent.
func (h *hall) run(frames int, loses func(frame int) bool) {
	h.t.Helper()
	for i := range frames {
		for _, c := range h.members {
			if b := c.packet(h.t); loses == nil || !loses(i) {
				h.worker.receiveDatagram(b, c.at, h.now)
			}
		}
		h.now = h.now.Add(frameTime)
		h.mixer.mix(h.now)
		for _, c := range h.members {
			h.receive(c)
		}
	}
}

// receive decodes the packet that the mixer has sent to a client, if any. It sends one more packet
// to mark the end, because sockets on loopback keep the order.
func (h *hall) receive(c *talker) {
	h.t.Helper()
	const end = "end"
	address := c.sink.LocalAddr().(*net.UDPAddr).AddrPort()
	if _, err := h.engine.udp.WriteToUDPAddrPort([]byte(end), address); err != nil {
		h.t.Fatal(err)
	}

	for {
		n, err := c.sink.Read(c.buffer[:])
		if err != nil {
			h.t.Fatal(err)
		}
		if string(c.buffer[:n]) == end {
			return
		}
		if isReport := c.buffer[1] >= 192 && c.buffer[1] <= 223; isReport {
			continue
		}

		plain, err := c.open.DecryptRTP(nil, c.buffer[:n], nil)
		if err != nil {
			h.t.Fatal(err)
		}
		samples := make([]int16, c.hear.Samples(len(plain)-12))
		c.hear.Decode(samples, plain[12:])
		c.heard = append(c.heard, samples...)
	}
}

// forget discards the audio that all clients have received.
func (h *hall) forget() {
	for _, c := range h.members {
		c.heard = nil
	}
}

// loudness returns the amplitude of a tone in the audio that the client has received.
func (c *talker) loudness(pitch float64) float64 {
	var re, im float64
	for i, s := range c.heard {
		sin, cos := math.Sincos(2 * math.Pi * pitch * float64(i) / c.rate())
		re += cos * float64(s)
		im += sin * float64(s)
	}
	return 2 * math.Hypot(re, im) / float64(max(len(c.heard), 1))
}

// wantHears fails the test unless the client hears the tones of exactly these members, each as loud
// as the member sent it.
func (h *hall) wantHears(c *talker, others ...*talker) {
	h.t.Helper()
	for i, other := range h.members {
		if other.pitch == 0 {
			continue
		}
		want := 0.0
		if slices.Contains(others, other) {
			want = 6000
		}
		if got := c.loudness(other.pitch); math.Abs(got-want) > 600 {
			h.t.Errorf("the tone of member %d is heard with an amplitude of %.0f, want %.0f", i, got, want)
		}
	}
}

// noise returns the largest amplitude in the audio that the client has received, except for one
// tone.
func (c *talker) noise(pitch float64) float64 {
	loudest := 0.0
	const piece = 800
	for start := 0; start+piece <= len(c.heard); start += piece {
		part := talker{codec: c.codec, heard: c.heard[start : start+piece]}
		var power float64
		for _, s := range part.heard {
			power += float64(s) * float64(s) / piece
		}
		loud := part.loudness(pitch)
		loudest = max(loudest, math.Sqrt(max(0, power-loud*loud/2)))
	}
	return loudest
}
