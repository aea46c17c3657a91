package line

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/logging"
	"github.com/pion/srtp/v3"
)

// profile is the SRTP protection profile of all lines (RFC 7714).
const profile = srtp.ProtectionProfileAeadAes128Gcm

// certificate returns the certificate of all lines in this process.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "line"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// Fingerprint returns the SHA-256 fingerprint of the certificate of all lines.
func Fingerprint() string {
	sum := sha256.Sum256(certificate().Certificate[0])
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// handshake establishes the keys (RFC 5764). The line does not compare the server's certificate
// with the fingerprint in the description.
func (l *Line) handshake(ctx context.Context) error {
	conn, err := dtls.ClientWithOptions(keyConn{l.conn, l}, l.conn.RemoteAddr(),
		dtls.WithCertificates(certificate()),
		dtls.WithInsecureSkipVerify(true),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM),
		dtls.WithLoggerFactory(silent()),
	)
	if err != nil {
		return err
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}

	state, _ := conn.ConnectionState()
	cfg := srtp.Config{Profile: profile}
	if err := cfg.ExtractSessionKeysFromDTLS(&state, true); err != nil {
		return err
	}
	keys := cfg.Keys
	l.out, err = srtp.CreateContext(keys.LocalMasterKey, keys.LocalMasterSalt, profile)
	if err != nil {
		return err
	}
	in, err := srtp.CreateContext(keys.RemoteMasterKey, keys.RemoteMasterSalt, profile)
	if err != nil {
		return err
	}
	l.in.Store(in)
	return nil
}

// silent returns loggers that write nothing.
func silent() logging.LoggerFactory {
	f := logging.NewDefaultLoggerFactory()
	f.Writer = io.Discard
	return f
}

// A keyConn is the connection of the handshake. It reads the DTLS packets that the line received.
type keyConn struct {
	*net.UDPConn
	line *Line
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
