// Package line implements the client's side of a call's audio. A line uses one UDP socket, one
// connectivity check and one DTLS-SRTP handshake. A line needs much less CPU time and memory than a
// WebRTC stack, because it supports only what a server with ICE-lite requires.
package line

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
	"github.com/pion/stun/v4"
)

// maxPacket is the longest packet that a line receives.
const maxPacket = 2048

// checkRepeat is how long a line waits before it repeats an unanswered check.
const checkRepeat = 200 * time.Millisecond

// password is the ICE password of all lines. It need not be secret: a stranger who knows it can
// only answer the server's checks. The handshake also needs the line's key.
const password = "abcdefghijklmnopqrstuvwx"

// A Line carries the audio of one call.
type Line struct {
	Ticks   uint32 // the duration of a packet in ticks of the codec's clock; may be set before Send
	conn    *net.UDPConn
	answers chan []byte // received STUN packets
	keys    chan []byte // received DTLS packets
	closed  chan struct{}
	hear    func(payload []byte)
	in      atomic.Pointer[srtp.Context]

	out    *srtp.Context
	packet []byte
	sealed []byte
}

// Description returns the SDP that all lines use, as an offer and as an answer. It describes one
// section of Opus audio.
func Description() string { return DescriptionFor(Fingerprint()) }

// DescriptionFor is like Description, but with the SHA-256 fingerprint of a different certificate
// (RFC 8122, section 5).
func DescriptionFor(fingerprint string) string {
	return strings.Join([]string{
		"v=0",
		"o=- 1 2 IN IP4 127.0.0.1",
		"s=-",
		"t=0 0",
		"m=audio 9 UDP/TLS/RTP/SAVPF 111",
		"c=IN IP4 0.0.0.0",
		"a=mid:0",
		"a=sendrecv",
		"a=rtcp-mux",
		"a=rtpmap:111 opus/48000/2",
		"a=setup:active",
		"a=ice-ufrag:abcd",
		"a=ice-pwd:" + password,
		"a=fingerprint:sha-256 " + fingerprint,
		"", // for the last line break
	}, "\r\n")
}

// These expressions find the parts of the server's description that a line needs.
var (
	ufragOf     = regexp.MustCompile(`a=ice-ufrag:(\S+)`)
	passwordOf  = regexp.MustCompile(`a=ice-pwd:(\S+)`)
	candidateOf = regexp.MustCompile(`a=candidate:\S+ 1 (?i:udp) \d+ (\S+) (\d+) typ host`)
)

// Open connects to the first UDP candidate in the server's description. Until the line is closed,
// it calls hear with the payload of each packet from the server. hear must not keep the payload.
func Open(ctx context.Context, description string, hear func(payload []byte)) (*Line, error) {
	candidate := candidateOf.FindStringSubmatch(description)
	if candidate == nil {
		return nil, fmt.Errorf("opening a line: the description has no UDP candidate: %q", description)
	}
	address := net.JoinHostPort(candidate[1], candidate[2])
	return OpenAt(ctx, address, description, hear)
}

// OpenAt is like Open, but connects to the given address.
func OpenAt(ctx context.Context, address, description string, hear func(payload []byte)) (*Line, error) {
	name, secret := ufragOf.FindStringSubmatch(description), passwordOf.FindStringSubmatch(description)
	if name == nil || secret == nil {
		return nil, fmt.Errorf("opening a line: the description has no ICE credentials: %q", description)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("opening a line: %w", err)
	}
	l := &Line{
		Ticks:   960,
		conn:    conn.(*net.UDPConn),
		answers: make(chan []byte, 16),
		keys:    make(chan []byte, 64),
		closed:  make(chan struct{}),
		hear:    hear,
	}
	go l.read()

	if err := l.connect(ctx, name[1], secret[1]); err != nil {
		l.Close()
		return nil, fmt.Errorf("opening a line: %w", err)
	}
	return l, nil
}

// connect proves that the line knows the server's ICE credentials, and establishes the keys.
func (l *Line) connect(ctx context.Context, ufrag, secret string) error {
	if err := l.prove(ctx, ufrag, secret); err != nil {
		return err
	}
	return l.handshake(ctx)
}

// Close closes the socket.
func (l *Line) Close() { _ = l.conn.Close() }

// read reads packets and dispatches them by kind (RFC 7983).
func (l *Line) read() {
	defer close(l.closed)
	buffer := make([]byte, maxPacket)
	var audio decrypter
	for {
		n, err := l.conn.Read(buffer)
		if err != nil {
			return
		}
		b := buffer[:n]

		switch {
		case n < 12: // too short for any kind
		case b[0] >= 128:
			l.receiveAudio(b, &audio)
		case b[0] == 0 && b[1] == 1:
			l.answer(b)
		case b[0] < 4:
			pass(l.answers, b)
		default:
			pass(l.keys, b)
		}
	}
}

// pass sends a copy of a packet to a channel. If the channel is full, the packet is dropped.
func pass(to chan<- []byte, packet []byte) {
	select {
	case to <- bytes.Clone(packet):
	default:
	}
}

// A decrypter holds a decrypted packet. It is used again for each packet to save allocations.
type decrypter struct {
	plain  [maxPacket]byte
	header rtp.Header
}

// receiveAudio decrypts a packet, and passes on its payload.
func (l *Line) receiveAudio(b []byte, d *decrypter) {
	in := l.in.Load()
	if in == nil {
		return // the handshake has not ended
	}
	packet, err := in.DecryptRTP(d.plain[:0], b, &d.header)
	if err != nil {
		return
	}
	l.hear(packet[d.header.MarshalSize():])
}

// answer answers a check from the server.
func (l *Line) answer(b []byte) {
	m := &stun.Message{Raw: b}
	if m.Decode() != nil {
		return
	}
	response := stun.MustBuild(
		stun.BindingSuccess,
		stun.NewTransactionIDSetter(m.TransactionID),
		stun.NewShortTermIntegrity(password),
		stun.Fingerprint,
	)
	_, _ = l.conn.Write(response.Raw) // if the response is lost, the server repeats its check
}

// prove proves to the server that the line knows the server's password. It repeats the check until
// the server answers.
func (l *Line) prove(ctx context.Context, ufrag, secret string) error {
	tick := time.NewTicker(checkRepeat)
	defer tick.Stop()
	for {
		m, err := stun.Build(
			stun.BindingRequest,
			stun.TransactionID,
			stun.NewUsername(ufrag+":abcd"),
			stun.RawAttribute{Type: stun.AttrUseCandidate},
			stun.RawAttribute{Type: stun.AttrPriority, Value: []byte{1, 2, 3, 4}},
			stun.NewShortTermIntegrity(secret),
			stun.Fingerprint,
		)
		if err != nil {
			return err
		}

		if _, err := l.conn.Write(m.Raw); err != nil {
			return err
		}
		select {
		case <-l.answers:
			return nil
		case <-tick.C:
		case <-l.closed:
			return net.ErrClosed
		case <-ctx.Done():
			return errors.Join(errors.New("the server does not answer checks"), ctx.Err())
		}
	}
}

// Send sends a packet of 20 ms with the given sequence number.
func (l *Line) Send(seq uint16, payload string) error {
	b := append(l.packet[:0], 0x80, 111) // version 2, the payload type of Opus
	b = binary.BigEndian.AppendUint16(b, seq)
	b = binary.BigEndian.AppendUint32(b, uint32(seq)*l.Ticks)
	b = binary.BigEndian.AppendUint32(b, 0x1234) // SSRC
	l.packet = append(b, payload...)
	sealed, err := l.out.EncryptRTP(l.sealed[:0], l.packet, nil)
	if err != nil {
		return err
	}
	l.sealed = sealed
	_, err = l.conn.Write(sealed)
	return err
}
