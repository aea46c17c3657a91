package media

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	_ "crypto/sha512" // for fingerprints of clients
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls/sdp"
)

const (
	rotation         = 24 * time.Hour   // maximum age of the engine's certificate
	handshakeTimeout = 20 * time.Second // maximum time of one handshake
	maxHandshakes    = 3                // attempts per transport
)

// An identity is a certificate of the engine and its fingerprint.
type identity struct {
	certificate tls.Certificate
	fingerprint sdp.Fingerprint
	created     time.Time
}

// rotateCertificate makes a new certificate for transports that are created from now on.
func (e *Engine) rotateCertificate(now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the media certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("making the media certificate: %w", err)
	}

	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "selvage"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(30 * rotation),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("making the media certificate: %w", err)
	}
	e.identity.Store(&identity{
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		fingerprint: sdp.Fingerprint{Hash: "sha-256", Value: fingerprintOf(crypto.SHA256, der)},
		created:     now,
	})
	return nil
}

// fingerprintOf formats a certificate's fingerprint for a description (RFC 8122, section 5).
func fingerprintOf(h crypto.Hash, certificate []byte) string {
	sum := h.New()
	sum.Write(certificate)
	pairs := make([]string, 0, h.Size())
	for _, b := range sum.Sum(nil) {
		pairs = append(pairs, strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	return strings.Join(pairs, ":")
}

// hashes are the hash functions that clients' fingerprints may use.
var hashes = map[string]crypto.Hash{"sha-256": crypto.SHA256, "sha-384": crypto.SHA384, "sha-512": crypto.SHA512}

// verifyCertificate returns an error unless the client's certificate has the fingerprint in its
// description.
func (t *transport) verifyCertificate(certificates [][]byte, _ [][]*x509.Certificate) error {
	f := t.fingerprint()
	h, ok := hashes[f.Hash]
	if !ok || len(certificates) == 0 {
		return errors.New("no usable fingerprint")
	}
	if subtle.ConstantTimeCompare([]byte(fingerprintOf(h, certificates[0])), []byte(f.Value)) != 1 {
		return errors.New("the certificate does not match the fingerprint")
	}
	return nil
}

// receiveDTLS queues a DTLS packet for the handshake. The first packet starts the handshake.
func (t *transport) receiveDTLS(b []byte, now time.Time) {
	if !t.pipe.push(b, now) {
		t.engine.counters.dropped.Add(1)
		return
	}
	t.startHandshake()
}

// startHandshake starts a handshake if the client has sent a DTLS packet and the client's
// fingerprint is known. It does nothing if a handshake is running, or after too many attempts.
func (t *transport) startHandshake() {
	if t.handshaking.Load() || t.pipe.empty() || t.fingerprint().Hash == "" || t.ctx.Err() != nil {
		return
	}
	if !t.handshaking.CompareAndSwap(false, true) {
		return
	}
	if t.attempts.Add(1) > maxHandshakes {
		return // handshaking stays set, so no further attempt is made
	}
	t.engine.group.Go(t.handshake)
}

// handshake establishes the transport's keys. It then keeps the DTLS association until the
// transport is closed, so that the last flight is repeated if the client missed it.
func (t *transport) handshake() {
	defer func() {
		if cause := recover(); cause != nil {
			_ = t.pipe.Close() // ends the association's goroutines
			t.engine.handlePanic(t.owner(), cause)
		}
	}()

	conn, err := t.establish()
	if err != nil {
		if t.ctx.Err() == nil {
			t.engine.counters.handshakeFailures.Add(1)
			t.engine.log.Debug("media handshake failed", "error", err)
		}
		t.pipe.reset()
		t.handshaking.Store(false)
		return
	}

	t.section.connected(t)
	<-t.ctx.Done()
	_ = conn.Close()
}

// establish performs the handshake, derives the keys, and returns the DTLS association.
func (t *transport) establish() (*dtls.Conn, error) {
	conn, err := dtls.ServerWithOptions(t.pipe, &net.UDPAddr{},
		dtls.WithCertificates(t.identity.certificate),
		dtls.WithClientAuth(dtls.RequireAnyClientCert),
		dtls.WithVerifyPeerCertificate(t.verifyCertificate),
		dtls.WithExtendedMasterSecret(dtls.RequireExtendedMasterSecret),
		dtls.WithInsecureSkipVerifyHello(true), // ICE has verified the address
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80),
		dtls.WithMTU(1200),
		dtls.WithFlightInterval(200*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(t.ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if err := t.deriveKeys(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// deriveKeys takes the SRTP keys from the handshake (RFC 5764, section 4.2).
func (t *transport) deriveKeys(conn *dtls.Conn) error {
	profile, ok := conn.SelectedSRTPProtectionProfile()
	if !ok {
		return errors.New("the client supports none of our SRTP profiles")
	}
	state, ok := conn.ConnectionState()
	if !ok {
		return errors.New("the handshake has no state")
	}
	c := srtp.Config{Profile: srtp.ProtectionProfile(profile)}
	if err := c.ExtractSessionKeysFromDTLS(&state, false); err != nil {
		return fmt.Errorf("extracting keys: %w", err)
	}

	in, err := srtp.CreateContext(c.Keys.RemoteMasterKey, c.Keys.RemoteMasterSalt, c.Profile,
		srtp.SRTPReplayProtection(reorder), srtp.SRTCPReplayProtection(64))
	if err != nil {
		return fmt.Errorf("making the receiving keys: %w", err)
	}
	out, err := srtp.CreateContext(c.Keys.LocalMasterKey, c.Keys.LocalMasterSalt, c.Profile)
	if err != nil {
		return fmt.Errorf("making the sending keys: %w", err)
	}

	t.in.mu.Lock()
	t.in.ctx = in
	t.in.mu.Unlock()
	t.section.out.setKeys(t, out)
	t.up.Store(true)
	return nil
}
