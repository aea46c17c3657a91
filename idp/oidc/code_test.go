package oidc_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
)

// TestSealedCode shows that a code has no entry in the session store, and can be redeemed after the
// store has been emptied.
func TestSealedCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c) // signs the browser in
	before := len(w.entries())

	code := b.code(c)
	if added := len(w.entries()) - before; added != 0 {
		t.Errorf("a code adds %d entries to the session store, want none", added)
	}

	w.empty()
	wantStatus(t, "redeeming", w.redeem(c, code), http.StatusOK)
}

// TestRewrittenCode shows that a redeemed code is refused in every other encoding, and that its tokens
// are then revoked.
func TestRewrittenCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	code := w.newBrowser().code(c, "scope", "openid offline_access")
	first := w.redeem(c, code).json(t)

	middle := len(code) - 30
	for name, again := range map[string]string{
		"a line break at the end": code + "\n",
		"line breaks inside":      code[:middle] + "\r\n" + code[middle:],
		"padded":                  code + "==",
		"another last letter":     code[:len(code)-1] + string(code[len(code)-1]+1),
		"an additional part":      code + ".",
		"a different header":      "e30" + code[strings.Index(code, ".."):],
	} {
		wantError(t, name, w.redeem(c, again), "invalid_grant")
	}
	w.lives("after the code was replayed", false, first)
}

// TestReplayMisused shows that replaying a code revokes its tokens, even if the replay is late or
// invalid for another reason.
func TestReplayMisused(t *testing.T) {
	w := newWorld(t)
	for name, replay := range map[string]func(c idp.Client, code string) reply{
		"a different verifier": func(c idp.Client, code string) reply {
			return w.redeem(c, code, "code_verifier", strings.Repeat("a", 43))
		},
		"another redirect_uri": func(c idp.Client, code string) reply {
			return w.redeem(c, code, "redirect_uri", "https://app.example/other")
		},
		"an expired code": func(c idp.Client, code string) reply {
			w.pass(2 * time.Minute)
			return w.redeem(c, code)
		},
	} {
		c, _ := w.client(nil)
		code := w.newBrowser().code(c, "scope", "openid offline_access")
		first := w.redeem(c, code).json(t)

		wantError(t, name, replay(c, code), "invalid_grant")
		w.lives("after a replay with "+name, false, first)
	}
}

// TestLongCode shows that the session store holds the content of a code that would be too long for
// a URL. The code can be redeemed once. It is lost if the store is lost.
func TestLongCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	nonce := strings.Repeat("n", 4000)

	b := w.newBrowser()
	code := b.code(c, "nonce", nonce)
	if len(code) > 128 {
		t.Fatalf("the code has %d characters, want at most 128", len(code))
	}

	// The code can be redeemed once, and a replay revokes the tokens.
	tokens := w.redeem(c, code).json(t)
	if returned := idClaims(t, tokens)["nonce"]; returned != nonce {
		t.Errorf("the nonce of the ID token is %v, want the requested one", returned)
	}
	wantError(t, "redeeming again", w.redeem(c, code), "invalid_grant")
	w.lives("after the replay", false, tokens)

	code = b.code(c, "nonce", nonce)
	w.empty()
	wantError(t, "after the store was emptied", w.redeem(c, code), "invalid_grant")
}
