package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRemembered shows that a token's content is remembered as long as its key is valid, and only
// if the token is valid.
func TestRemembered(t *testing.T) {
	now := time.Now()
	ring := &Ring{c: Config{Now: func() time.Time { return now }},
		asked: now} // prevents reads of the store
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	is := func(maker string, roots map[string][]byte) {
		ring.latest.Store(&snapshot{roots: roots, makers: map[Use]Record{Seal: {Kid: maker}}})
	}

	is("k1", map[string][]byte{"k1": key(1), "k2": key(2)})
	sealer := ring.Sealer("sat", "SAT", "puc.localhost:8443")
	token, err := sealer.Seal("alice")
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	read := func(payload []byte) (any, error) {
		reads++
		return string(payload), nil
	}

	want := func(what, token, said string, count int) {
		t.Helper()
		v, kid, ok := sealer.Remembered(token, read)
		if ok != (said != "") || ok && (v != said || kid != "k1") || reads != count {
			t.Errorf("%s: %v, %q, %v after %d reads, want %q after %d", what, v, kid, ok, reads, said, count)
		}
	}

	want("the first time", token, `"alice"`, 1)
	want("again", token, `"alice"`, 1)
	changed := token[:len(token)-2] + "AA"
	if changed == token {
		changed = token[:len(token)-2] + "QA"
	}
	want("a changed token", changed, "", 1)
	want("a changed token again", changed, "", 1)
	if _, _, ok := sealer.Remembered(token+".", func([]byte) (any, error) {
		return nil, errors.New("unreadable")
	}); ok {
		t.Error("a token with an additional part is accepted")
	}

	is("k2", map[string][]byte{"k1": key(1), "k2": key(2)})
	want("after a rotation", token, `"alice"`, 2)
	is("k2", map[string][]byte{"k2": key(2)})
	want("after its key was revoked", token, "", 2)
	is("k2", map[string][]byte{"k1": key(3), "k2": key(2)})
	want("under a different key of the same name", token, "", 2)

	for i := range maxOpened + 10 {
		other, err := sealer.Seal(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := sealer.Remembered(other, read); !ok {
			t.Fatalf("token %d is refused", i)
		}
	}

	if n := len(sealer.ends().opened.m); n > maxOpened {
		t.Errorf("%d tokens are cached, want at most %d", n, maxOpened)
	}
}

// TestRememberedSignature shows that a verified token is remembered as long as its key is valid,
// only under its typ, and only if its signature is valid.
func TestRememberedSignature(t *testing.T) {
	now := time.Now()
	ring := &Ring{c: Config{Now: func() time.Time { return now }},
		asked: now} // prevents reads of the store
	is := func(kids ...string) {
		s := &snapshot{signers: make(map[string]*signer), makers: map[Use]Record{ES256: {Kid: kids[0]}}}
		for _, kid := range kids {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			s.signers[kid] = newSigner(Record{Kid: kid, Use: ES256}, key)
		}
		ring.latest.Store(s)
	}

	is("k1")
	token, err := ring.Sign(ES256, "at+jwt", "alice")
	if err != nil {
		t.Fatal(err)
	}
	want := func(what, token, typ string, ok bool, remembered int) {
		t.Helper()
		payload, got := ring.VerifyJWS(token, typ)
		n := len(ring.latest.Load().verified.m)
		if got != ok || ok && string(payload) != `"alice"` || n != remembered {
			t.Errorf("%s: %q, %v with %d remembered, want %v with %d", what, payload, got, n, ok, remembered)
		}
	}

	want("a different typ", token, "JWT", false, 0)
	want("the first time", token, "at+jwt", true, 1)
	want("again", token, "at+jwt", true, 1)
	want("a different typ again", token, "JWT", false, 1)
	changed := strings.Replace(token, ".", ".A", 1)
	want("a changed token", changed, "at+jwt", false, 1)
	want("a changed token again", changed, "at+jwt", false, 1)

	kept := ring.latest.Load().signers["k1"]
	is("k2", "k1")
	want("under a different key of the same name", token, "at+jwt", false, 0)
	ring.latest.Load().signers["k1"] = kept
	want("under its key", token, "at+jwt", true, 1)
	is("k2")
	want("after its key was revoked", token, "at+jwt", false, 0)
}
