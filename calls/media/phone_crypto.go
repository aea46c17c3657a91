package media

import (
	"crypto/rand"
	"encoding/binary"
	"slices"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

// Phones encrypt with keys in descriptions (RFC 4568). For each section, the engine makes a random
// key, which never changes. A phone may change its own key. The two directions never use the same
// key. Otherwise, SRTP would use the same key stream for two packets with the same number.

// profiles maps the suites in a=crypto to their names in package srtp.
var profiles = map[string]srtp.ProtectionProfile{
	"AES_CM_128_HMAC_SHA1_80": srtp.ProtectionProfileAes128CmHmacSha1_80,
	"AES_CM_128_HMAC_SHA1_32": srtp.ProtectionProfileAes128CmHmacSha1_32,
	"AES_256_CM_HMAC_SHA1_80": srtp.ProtectionProfileAes256CmHmacSha1_80,
	"AES_256_CM_HMAC_SHA1_32": srtp.ProtectionProfileAes256CmHmacSha1_32,
	"AEAD_AES_128_GCM":        srtp.ProtectionProfileAeadAes128Gcm,
	"AEAD_AES_256_GCM":        srtp.ProtectionProfileAeadAes256Gcm,
}

// keys returns our keys for the media of a phone. Plain RTP has no keys. An offer has one key for
// each suite until the phone answers it. The caller holds the engine's mu.
func (s *section) keys() []sdp.Crypto {
	if s == nil || !s.live() {
		return nil
	}
	return s.transport.crypto
}

// suites returns the suites that a phone may use in a section. old is nil for a new section. The
// caller holds the engine's mu.
func (l *leg) suites(old *section) (names []string) {
	if len(old.keys()) == 0 {
		return sdp.Suites(l.terms.SRTP.Suites)
	}
	for _, c := range old.keys() {
		names = append(names, c.Suite)
	}
	return names
}

// contextFor returns the cipher for the key in c.
func contextFor(c sdp.Crypto, options ...srtp.ContextOption) (*srtp.Context, error) {
	profile := profiles[c.Suite]
	length, err := profile.KeyLen()
	if err != nil {
		return nil, err
	}
	return srtp.CreateContext([]byte(c.Key[:length]), []byte(c.Key[length:]), profile, options...)
}

// A phoneCipher decrypts the packets of a phone. srtp.Context never forgets an SSRC. Phones may begin
// to use other SSRCs, for example after a hold, but a hostile phone could use a new one in each
// packet. After maxSources SSRCs, phoneCipher therefore begins with a new context.
type phoneCipher struct {
	*srtp.Context
	key     sdp.Crypto
	sources []uint32 // SSRCs that the context knows
}

// newPhoneCipher returns a cipher for the packets of a phone with the key in c.
func newPhoneCipher(c sdp.Crypto) (*phoneCipher, error) {
	ctx, err := contextFor(c, srtp.SRTPReplayProtection(reorder), srtp.SRTCPReplayProtection(64))
	if err != nil {
		return nil, err
	}
	return &phoneCipher{Context: ctx, key: c}, nil
}

// DecryptRTP implements cipher.
func (c *phoneCipher) DecryptRTP(dst, packet []byte, h *rtp.Header) ([]byte, error) {
	ssrc := binary.BigEndian.Uint32(packet[8:])
	if slices.Contains(c.sources, ssrc) {
		return c.Context.DecryptRTP(dst, packet, h)
	}

	next := c
	if len(c.sources) == maxSources {
		fresh, err := newPhoneCipher(c.key)
		if err != nil {
			return nil, err
		}
		next = fresh
	}
	plain, err := next.Context.DecryptRTP(dst, packet, h)
	if err != nil {
		return nil, err
	}
	c.Context = next.Context
	c.sources = append(next.sources, ssrc)
	return plain, nil
}

// makeKeys makes a key for each suite. The engine encrypts the media that it sends to the phone
// with one of them.
func (t *transport) makeKeys(suites []sdp.Crypto) {
	t.port.secure = true
	t.crypto = slices.Clone(suites)
	for i, c := range t.crypto {
		key := make([]byte, sdp.KeyLength(c.Suite))
		_, _ = rand.Read(key) // never fails
		t.crypto[i].Key = string(key)
	}
}

// setRemoteKey sets the key of the media that a phone sends, and keeps only our key for the same
// suite. If the phone's key has not changed, the state of its stream is kept. The caller holds the
// engine's mu.
func (t *transport) setRemoteKey(s *sdp.Section) {
	ours, theirs, ok := chooseKeys(t.crypto, s)
	if !ok {
		return
	}
	if ours.Tag = theirs.Tag; t.phoneKey == "" {
		if ctx, err := contextFor(ours); err == nil { // after an error, nothing is sent
			t.section.out.setKeys(t, ctx)
		}
	}
	t.crypto = []sdp.Crypto{ours}
	if theirs.Key == t.phoneKey {
		return
	}

	ctx, err := newPhoneCipher(theirs)
	if err != nil {
		return // the phone's packets are dropped
	}
	t.phoneKey = theirs.Key
	t.in.mu.Lock()
	t.in.ctx = ctx
	t.in.mu.Unlock()
}

// chooseKeys returns the keys of both sides for the first of our suites that a phone's description
// contains. ok is false if the description contains none of our suites, or if the phone sends our
// own key back.
func chooseKeys(keys []sdp.Crypto, s *sdp.Section) (ours, theirs sdp.Crypto, ok bool) {
	for _, ours := range keys {
		if c, found := s.FindCrypto([]string{ours.Suite}); found && c.Key != ours.Key {
			return ours, c, true
		}
	}
	return ours, theirs, false
}

// checkKeys returns an error if a phone's answer to an offer of SRTP has no usable key. The caller
// holds the engine's mu.
func (l *leg) checkKeys(s *sdp.Section) error {
	keys := l.findSection(s.Mid).keys()
	if len(keys) == 0 {
		return nil
	}
	if _, _, ok := chooseKeys(keys, s); !ok || !s.IsSecure() {
		return problem.New(problem.Invalid, "invalid_sdp", "section %s has no key for the offered encryption", s.Mid)
	}
	return nil
}
