package keys

import (
	"bytes"
	"errors"
	"fmt"
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
	want("under another key of the same name", token, "", 2)

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
