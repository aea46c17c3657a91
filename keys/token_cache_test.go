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
	"unsafe"
)

// TestRemembered shows that a token's content is remembered as long as its key is valid, and only
// if the token is valid.
func TestRemembered(t *testing.T) {
	now := time.Now()
	ring := &Ring{
		c:     Config{Now: func() time.Time { return now }},
		asked: now, // prevents reads of the store
	}
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	setRing := func(current string, roots map[string][]byte) {
		ring.latest.Store(&snapshot{roots: roots, makers: map[Use]Record{Seal: {Kid: current}}})
	}

	setRing("k1", map[string][]byte{"k1": key(1), "k2": key(2)})
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

	wantReads := func(when string, want int) {
		t.Helper()
		if reads != want {
			t.Errorf("%s: %d payloads were read, want %d", when, reads, want)
		}
	}
	wantAlice := func(when string) {
		t.Helper()
		v, kid, ok := sealer.Remembered(token, read)
		if !ok {
			t.Fatalf("%s: the token is refused", when)
		}
		if v != `"alice"` {
			t.Errorf("%s: the content is %v, want \"alice\"", when, v)
		}
		if kid != "k1" {
			t.Errorf("%s: the kid is %q, want k1", when, kid)
		}
	}
	wantRefused := func(when, token string) {
		t.Helper()
		if v, _, ok := sealer.Remembered(token, read); ok {
			t.Errorf("%s: the token is accepted with the content %v, want it refused", when, v)
		}
	}

	wantAlice("the first time")
	wantReads("the first time", 1)
	wantAlice("again")
	wantReads("again", 1)
	changed := token[:len(token)-2] + "AA"
	if changed == token {
		changed = token[:len(token)-2] + "QA"
	}
	wantRefused("a changed token", changed)
	wantRefused("a changed token again", changed)
	wantReads("a changed token again", 1)
	unreadable := func([]byte) (any, error) { return nil, errors.New("unreadable") }
	if _, _, ok := sealer.Remembered(token+".", unreadable); ok {
		t.Error("a token with an additional part is accepted")
	}

	setRing("k2", map[string][]byte{"k1": key(1), "k2": key(2)})
	wantAlice("after a rotation")
	wantReads("after a rotation", 2)
	setRing("k2", map[string][]byte{"k2": key(2)})
	wantRefused("after the key was revoked", token)
	wantReads("after the key was revoked", 2)
	setRing("k2", map[string][]byte{"k1": key(3), "k2": key(2)})
	wantRefused("under a different key of the same name", token)
	wantReads("under a different key of the same name", 2)

	for i := range maxOpened + 10 {
		other, err := sealer.Seal(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := sealer.Remembered(other, read); !ok {
			t.Fatalf("token %d is refused", i)
		}
	}

	if n := len(sealer.keys().opened.m); n > maxOpened {
		t.Errorf("%d tokens are cached, want at most %d", n, maxOpened)
	}
}

// TestRememberedSignature shows that a verified token is remembered as long as its key is valid,
// only under its typ, and only if its signature is valid.
func TestRememberedSignature(t *testing.T) {
	now := time.Now()
	ring := &Ring{
		c:     Config{Now: func() time.Time { return now }},
		asked: now, // prevents reads of the store
	}
	setRing := func(current string, others ...string) {
		s := &snapshot{signers: make(map[string]*signer), makers: map[Use]Record{ES256: {Kid: current}}}
		kids := append([]string{current}, others...)
		for _, kid := range kids {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			s.signers[kid] = newSigner(Record{Kid: kid, Use: ES256}, key)
		}
		ring.latest.Store(s)
	}

	setRing("k1")
	token, err := ring.Sign(ES256, "at+jwt", "alice")
	if err != nil {
		t.Fatal(err)
	}
	wantRemembered := func(when string, want int) {
		t.Helper()
		if n := len(ring.latest.Load().verified.m); n != want {
			t.Errorf("%s: %d tokens are remembered, want %d", when, n, want)
		}
	}
	wantAlice := func(when string) {
		t.Helper()
		payload, ok := ring.VerifyJWS(token, "at+jwt")
		if !ok {
			t.Fatalf("%s: the token is refused", when)
		}
		if string(payload) != `"alice"` {
			t.Errorf("%s: the payload is %s, want \"alice\"", when, payload)
		}
	}
	wantRefused := func(when, token, typ string) {
		t.Helper()
		if payload, ok := ring.VerifyJWS(token, typ); ok {
			t.Errorf("%s: the token is accepted with the payload %s, want it refused", when, payload)
		}
	}

	wantRefused("a different typ", token, "JWT")
	wantRemembered("a different typ", 0)
	wantAlice("the first time")
	wantRemembered("the first time", 1)
	wantAlice("again")
	wantRemembered("again", 1)
	wantRefused("a different typ again", token, "JWT")
	changed := strings.Replace(token, ".", ".A", 1)
	wantRefused("a changed token", changed, "at+jwt")
	wantRefused("a changed token again", changed, "at+jwt")
	wantRemembered("a changed token again", 1)

	key := ring.latest.Load().signers["k1"]
	setRing("k2", "k1")
	wantRefused("under a different key of the same name", token, "at+jwt")
	wantRemembered("under a different key of the same name", 0)
	ring.latest.Load().signers["k1"] = key
	wantAlice("under its key")
	wantRemembered("under its key", 1)
	setRing("k2")
	wantRefused("after the key was revoked", token, "at+jwt")
	wantRemembered("after the key was revoked", 0)
}

// TestRememberedSize shows that a cache keeps neither long tokens nor the requests that contain tokens.
func TestRememberedSize(t *testing.T) {
	now := time.Now()
	ring := &Ring{
		c:     Config{Now: func() time.Time { return now }},
		asked: now, // prevents reads of the store
	}
	ring.latest.Store(&snapshot{
		roots:  map[string][]byte{"k1": bytes.Repeat([]byte{1}, 32)},
		makers: map[Use]Record{Seal: {Kid: "k1"}},
	})
	sealer := ring.Sealer("sat", "SAT", "puc.localhost:8443")
	read := func(payload []byte) (any, error) { return string(payload), nil }

	long, err := sealer.Seal(strings.Repeat("a", maxRemembered))
	if err != nil {
		t.Fatal(err)
	}
	short, err := sealer.Seal("alice")
	if err != nil {
		t.Fatal(err)
	}
	request := "token=" + short + "&padding=" + strings.Repeat("b", maxRemembered)
	sent := strings.TrimPrefix(request, "token=")[:len(short)]

	for name, token := range map[string]string{
		"a long token":                  long,
		"a token with many line breaks": short + strings.Repeat("\n", maxRemembered),
		"a token in a large request":    sent,
	} {
		if _, _, ok := sealer.Remembered(token, read); !ok {
			t.Errorf("%s is refused", name)
		}
	}

	cached := sealer.keys().opened.m
	if len(cached) != 1 {
		t.Errorf("%d tokens are remembered, want only the short one", len(cached))
	}
	for token := range cached {
		if unsafe.StringData(token) == unsafe.StringData(sent) {
			t.Error("the remembered token is a part of the request, want a copy")
		}
	}
}
