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
	br := w.browser()
	br.code(c) // signs the browser in
	before := len(w.entries())

	code := br.code(c)
	if got := len(w.entries()); got != before {
		t.Errorf("a code adds %d entries to the session store, want none", got-before)
	}

	w.empty()
	if got := w.redeem(c, code); got.status != http.StatusOK {
		t.Errorf("redeeming: %d %s, want 200", got.status, got.body)
	}
}

// TestRewrittenCode shows that other encodings of a redeemed code count as the same code.
func TestRewrittenCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	code := w.browser().code(c, "scope", "openid offline_access")
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
		if got := w.redeem(c, again); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: %d %s, want invalid_grant", name, got.status, got.body)
		}
	}

	if got := w.userinfo(text(first["access_token"])); got.status != http.StatusUnauthorized {
		t.Errorf("the access token after the code was replayed: %d, want 401", got.status)
	}
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
		"after its expiry": func(c idp.Client, code string) reply {
			w.pass(2 * time.Minute)
			return w.redeem(c, code)
		},
	} {
		c, _ := w.client(nil)
		code := w.browser().code(c, "scope", "openid offline_access")
		first := w.redeem(c, code).json(t)

		if got := replay(c, code); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: %d %s, want invalid_grant", name, got.status, got.body)
		}
		if got := w.userinfo(text(first["access_token"])); got.status != http.StatusUnauthorized {
			t.Errorf("%s: the access token after the replay: %d, want 401", name, got.status)
		}
	}
}

// TestLongCode shows that the session store holds the content of a code that would be too long for
// a URL. The code can be redeemed once. It is lost if the store is lost.
func TestLongCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	nonce := strings.Repeat("n", 4000)

	br := w.browser()
	code := br.code(c, "nonce", nonce)
	if len(code) > 128 {
		t.Fatalf("the code has %d characters, want at most 128", len(code))
	}

	// The code can be redeemed once, and a replay revokes the tokens.
	got := w.redeem(c, code)
	if claims := idClaims(t, got.json(t)); claims["nonce"] != nonce {
		t.Errorf("the nonce of the ID token is %v, want the requested one", claims["nonce"])
	}
	if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("redeeming again: %d %s, want invalid_grant", got.status, got.body)
	}
	if got := w.userinfo(text(got.json(t)["access_token"])); got.status != http.StatusUnauthorized {
		t.Errorf("the access token after the replay: %d, want 401", got.status)
	}

	code = br.code(c, "nonce", nonce)
	w.empty()
	if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("after the store was emptied: %d %s, want invalid_grant", got.status, got.body)
	}
}
