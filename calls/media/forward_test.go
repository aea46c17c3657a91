package media

import (
	"encoding/binary"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A pair is two linked legs with made-up keys. The test encrypts packets as the first client.
type pair struct {
	engine *Engine
	worker *worker
	client *srtp.Context // encrypts as the first client
	source netip.AddrPort
	seq    uint16
	kind   calls.Kind
	sink   *net.UDPConn // stands for the second client
}

// newPair links two legs, each with a section of the given kind. Packets to the second leg go to a
// socket that is not read.
func newPair(t testing.TB, kind calls.Kind, profile srtp.ProtectionProfile) *pair {
	t.Helper()
	e, err := open(Config{Listen: "127.0.0.1:0", NoTCP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	sink, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })

	p := &pair{
		engine: e,
		worker: e.newWorker(),
		source: netip.MustParseAddrPort("192.0.2.1:5000"),
		kind:   kind,
		sink:   sink,
	}
	p.worker.from.udp = e.udp
	codec := sdp.Codec{Type: 111, Name: sdp.Opus, Clock: 48000}
	if kind == calls.Video {
		codec = sdp.Codec{Type: 111, Name: sdp.VP8, Clock: 90000}
	}

	var legs []*leg
	for id := range uint8(2) {
		l := e.newLeg(nil, calls.Terms{})
		s := l.newSection(sdp.Section{
			Kind:       string(kind),
			Mid:        "0",
			Direction:  sdp.SendReceive,
			Codecs:     []sdp.Codec{codec},
			Extensions: []sdp.Extension{{ID: id + 1, URI: sdp.AudioLevel}},
		}, nil)
		l.sections = []*section{s}
		s.transport.in.ctx = newContext(t, profile)
		p.client = newContext(t, profile)
		s.out.setKeys(s.transport, newContext(t, profile))
		to := path{udp: e.udp, remote: sink.LocalAddr().(*net.UDPAddr).AddrPort()}
		s.transport.path.Store(&to)
		s.transport.peers = []*peer{{path: to, consentAt: time.Now(), renewAt: time.Now().Add(time.Hour)}}
		s.transport.in.rtp = bucket{rate: 1e12, burst: 1e12}
		e.legs[l] = struct{}{}
		legs = append(legs, l)
	}

	legs[0].Link(kind, legs[1])
	e.table.claimAddress(p.source, legs[0].sections[0].transport, time.Now())
	return p
}

// newContext returns a context whose keys are always the same.
func newContext(t testing.TB, profile srtp.ProtectionProfile) *srtp.Context {
	t.Helper()
	salt, err := profile.SaltLen()
	if err != nil {
		t.Fatal(err)
	}
	c, err := srtp.CreateContext(make([]byte, 16), make([]byte, salt), profile, srtp.SRTPReplayProtection(512))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// packets returns n encrypted packets from the first client.
func (p *pair) packets(t testing.TB, n, size int) [][]byte {
	t.Helper()
	encrypted := make([][]byte, n)
	for i := range encrypted {
		p.seq++
		header := rtp.Header{
			Version:        2,
			PayloadType:    111,
			SSRC:           7,
			SequenceNumber: p.seq,
			Timestamp:      uint32(p.seq) * 960,
		}
		packet := rtp.Packet{Header: header, Payload: make([]byte, size)}
		packet.Payload[0] = 0x10 // VP8: the start of a key frame
		if err := packet.SetExtension(1, []byte{30}); err != nil {
			t.Fatal(err)
		}

		plain, err := packet.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		encrypted[i], err = p.client.EncryptRTP(nil, plain, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	return encrypted
}

// TestForwardAllocations shows that forwarding a packet does not allocate memory.
func TestForwardAllocations(t *testing.T) {
	const warmup, runs = 300, 500
	for _, profile := range []srtp.ProtectionProfile{
		srtp.ProtectionProfileAeadAes128Gcm,
		srtp.ProtectionProfileAes128CmHmacSha1_80,
	} {
		for _, kind := range kinds {
			p := newPair(t, kind, profile)
			packets := p.packets(t, warmup+runs+1, 100)
			for _, b := range packets[:warmup] {
				p.worker.receiveDatagram(b, p.source, time.Now())
			}

			i := warmup
			allocations := testing.AllocsPerRun(runs, func() {
				p.worker.receiveDatagram(packets[i], p.source, time.Now())
				i++
			})
			if allocations != 0 && !raceDetector() {
				t.Errorf("forwarding %s with %v allocates %v times per packet, want 0", kind, profile, allocations)
			}
			stats := p.engine.Stats()
			if stats.Sent != warmup+runs+1 {
				t.Errorf("%d packets were sent, want all %d", stats.Sent, warmup+runs+1)
			}
			if stats.Dropped != 0 {
				t.Errorf("%d packets were dropped, want none", stats.Dropped)
			}
		}
	}
}

// raceDetector reports whether the test runs under the race detector, with which the standard
// library's HMAC allocates.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-race" && s.Value == "true"
	})
}

// BenchmarkForward measures the cost of a 20 ms Opus packet after it has been read: decryption, headers,
// encryption, and the system call that sends it.
func BenchmarkForward(b *testing.B) {
	p := newPair(b, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
	b.ReportAllocs()
	var cpu time.Duration
	for done := 0; done < b.N; {
		b.StopTimer()
		packets := p.packets(b, min(b.N-done, 10_000), 80)
		began := processorTime()
		b.StartTimer()
		for _, packet := range packets {
			p.worker.receiveDatagram(packet, p.source, time.Now())
		}
		cpu += processorTime() - began
		done += len(packets)
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/packet")
}

// processorTime returns the CPU time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestEpochs shows that no sequence number is used twice, no matter what the sources send. Late
// packets from an earlier epoch are dropped.
func TestEpochs(t *testing.T) {
	p := newPair(t, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
	from, to := p.linked()

	other := &section{}
	used := map[uint16]bool{}
	now := time.Now()
	send := func(source *section, ssrc uint32, seq uint16, want bool) {
		t.Helper()
		before := to.out.sent
		plain := make([]byte, 20)
		plain[0], plain[1] = 0x80, 111
		binary.BigEndian.PutUint16(plain[2:], seq)
		binary.BigEndian.PutUint32(plain[8:], ssrc)
		header, _ := parse(plain)
		to.out.forward(p.worker, source, plain, header, sdp.Opus, now)
		if got := to.out.sent > before; got != want {
			t.Errorf("packet %d of source %d is sent: %v, want %v", seq, ssrc, got, want)
			return
		}
		if !want {
			return
		}
		number := binary.BigEndian.Uint16(plain[2:])
		if used[number] {
			t.Errorf("number %d is used twice", number)
		}
		used[number] = true
	}

	send(from, 1, 65534, true)
	send(from, 1, 65535, true)
	send(from, 1, 1, true) // packet 0 is late
	send(from, 1, 0, true)
	send(from, 1, 65533, false) // older than the epoch
	send(from, 2, 100, true)    // the client begins a new stream
	send(from, 2, 99, false)
	send(other, 1, 2, true) // a different client takes over
	send(other, 1, 1, false)
	send(from, 2, 101, true)
	to.out.endEpoch(nil)
	send(from, 2, 103, true)
	send(from, 2, 102, false)
	for i := range uint16(5000) {
		send(from, 2, 104+i, true)
	}
}
