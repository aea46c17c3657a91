package phone

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/logging"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
	"github.com/pion/stun/v4"
)

// A line carries the audio of a call without a PeerConnection: one socket, one check of its path
// and one handshake. It costs a fraction of a PeerConnection, so that a program can make many calls
// at the same time.
type line struct {
	conn    *net.UDPConn
	answers chan []byte // STUN
	keys    chan []byte // DTLS
	closed  chan struct{}
	hear    func(payload []byte)
	in      atomic.Pointer[srtp.Context]

	out    *srtp.Context
	packet []byte
	sealed []byte
}

// linePassword is the ICE password of all lines.
const linePassword = "abcdefghijklmnopqrstuvwx"

// lineProfile is the SRTP protection profile of all lines.
const lineProfile = srtp.ProtectionProfileAeadAes128Gcm

// lineCertificate returns the certificate of all lines.
var lineCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "line"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// lineDescription returns the description that all lines use.
func lineDescription() string {
	sum := sha256.Sum256(lineCertificate().Certificate[0])
	return describeAs(strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":"))
}

// The parts of the server's description that a line needs.
var (
	ufragOf     = regexp.MustCompile(`a=ice-ufrag:(\S+)`)
	passwordOf  = regexp.MustCompile(`a=ice-pwd:(\S+)`)
	candidateOf = regexp.MustCompile(`a=candidate:\S+ 1 (?i:udp) \d+ (\S+) (\d+) typ host`)
)

// openLine connects to the server that sent the description.
func openLine(description string, hear func(payload []byte)) (*line, error) {
	ufrag, password := ufragOf.FindStringSubmatch(description), passwordOf.FindStringSubmatch(description)
	at := candidateOf.FindStringSubmatch(description)
	if ufrag == nil || password == nil || at == nil {
		return nil, fmt.Errorf("the server's description is %q", description)
	}
	conn, err := net.Dial("udp", net.JoinHostPort(at[1], at[2]))
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn.(*net.UDPConn), answers: make(chan []byte, 16), keys: make(chan []byte, 64),
		closed: make(chan struct{}), hear: hear}
	go l.read()
	if err := errors.Join(l.prove(ufrag[1], password[1]), l.handshake()); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// read reads packets and dispatches them by kind.
func (l *line) read() {
	defer close(l.closed)
	buffer, plain, header := make([]byte, 2048), make([]byte, 2048), &rtp.Header{}
	for {
		n, err := l.conn.Read(buffer)
		if err != nil {
			return
		}
		b := buffer[:n]

		switch {
		case n < 12:
		case b[0] >= 128:
			if in := l.in.Load(); in != nil {
				if opened, err := in.DecryptRTP(plain[:0], b, header); err == nil {
					l.hear(opened[header.MarshalSize():])
				}
			}
		case b[0] == 0 && b[1] == 1:
			l.answer(b)
		default:
			to := l.keys
			if b[0] < 4 {
				to = l.answers
			}
			select {
			case to <- append([]byte(nil), b...):
			default:
			}
		}
	}
}

// answer answers a check from the server.
func (l *line) answer(b []byte) {
	m := &stun.Message{Raw: b}
	if m.Decode() == nil {
		_, _ = l.conn.Write(stun.MustBuild(stun.BindingSuccess, stun.NewTransactionIDSetter(m.TransactionID),
			stun.NewShortTermIntegrity(linePassword), stun.Fingerprint).Raw) // the server checks again
	}
}

// prove proves to the server that the line knows the password, repeatedly until the server answers.
func (l *line) prove(ufrag, password string) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		m, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(ufrag+":abcd"),
			stun.RawAttribute{Type: stun.AttrUseCandidate},
			stun.RawAttribute{Type: stun.AttrPriority, Value: []byte{1, 2, 3, 4}},
			stun.NewShortTermIntegrity(password), stun.Fingerprint)
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
		case <-end:
			return errors.New("the server does not answer checks")
		}
	}
}

// handshake establishes the keys.
func (l *line) handshake() error {
	conn, err := dtls.ClientWithOptions(keyConn{l.conn, l}, l.conn.RemoteAddr(),
		dtls.WithCertificates(lineCertificate()), dtls.WithInsecureSkipVerify(true),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM), dtls.WithLoggerFactory(noLogs()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}

	state, _ := conn.ConnectionState()
	cfg := srtp.Config{Profile: lineProfile}
	if err := cfg.ExtractSessionKeysFromDTLS(&state, true); err != nil {
		return err
	}
	if l.out, err = srtp.CreateContext(cfg.Keys.LocalMasterKey, cfg.Keys.LocalMasterSalt, lineProfile); err != nil {
		return err
	}
	in, err := srtp.CreateContext(cfg.Keys.RemoteMasterKey, cfg.Keys.RemoteMasterSalt, lineProfile)
	l.in.Store(in)
	return err
}

func noLogs() logging.LoggerFactory {
	f := logging.NewDefaultLoggerFactory()
	f.Writer = io.Discard
	return f
}

// A keyConn reads the packets of the handshake.
type keyConn struct {
	*net.UDPConn
	line *line
}

func (k keyConn) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case p := <-k.line.keys:
		return copy(b, p), k.RemoteAddr(), nil
	case <-k.line.closed:
		return 0, nil, net.ErrClosed
	}
}

func (k keyConn) WriteTo(b []byte, _ net.Addr) (int, error) { return k.Write(b) }
func (k keyConn) SetReadDeadline(time.Time) error           { return nil }
func (k keyConn) SetDeadline(time.Time) error               { return nil }

// say sends a packet with the given sequence number.
func (l *line) say(seq uint16, payload string) error {
	b := append(l.packet[:0], 0x80, 111)
	b = binary.BigEndian.AppendUint16(b, seq)
	b = binary.BigEndian.AppendUint32(b, uint32(seq)*960)
	b = binary.BigEndian.AppendUint32(b, 0x1234)
	l.packet = append(b, payload...)
	sealed, err := l.out.EncryptRTP(l.sealed[:0], l.packet, nil)
	if err != nil {
		return err
	}
	l.sealed = sealed
	_, err = l.conn.Write(sealed)
	return err
}
