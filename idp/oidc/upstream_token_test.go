package oidc_test

import (
	"crypto"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
)

// A forger is a provider whose ID tokens a test can change.
type forger struct {
	url    string
	key    crypto.Signer
	signer crypto.Signer
	nonce  string
	change func(claims map[string]any)

	redeemed atomic.Int32 // number of codes sent to the provider
}

// newForger starts a provider. Its ID tokens are valid unless change, which must be set, alters them.
func newForger(t *testing.T) *forger {
	f := &forger{key: newKey(t, jose.ES256)}
	f.signer = f.key
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	answer := func(path string, body func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(body())
		})
	}

	answer("/.well-known/openid-configuration", func() any {
		return map[string]any{
			"issuer":                                f.url,
			"authorization_endpoint":                f.url + "/auth",
			"token_endpoint":                        f.url + "/token",
			"jwks_uri":                              f.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		}
	})
	answer("/keys", func() any {
		return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: f.key.Public(), KeyID: "k", Algorithm: "ES256"}}}
	})
	answer("/token", func() any {
		f.redeemed.Add(1)
		now := time.Now().Unix()
		claims := map[string]any{
			"iss":            f.url,
			"sub":            "1",
			"aud":            "me",
			"iat":            now,
			"exp":            now + 60,
			"nonce":          f.nonce,
			"email":          "mallory@example.com",
			"email_verified": true,
		}
		f.change(claims)
		p := party{key: f.signer, kid: "k", alg: jose.ES256}
		return map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(t, claims)}
	})
	return f
}

// forge signs in to the app with an ID token of fg whose claims are changed. params contains
// additional parameters for the app's request.
func (f federation) forge(fg *forger, change func(map[string]any), params ...string) reply {
	f.t.Helper()
	return f.forgeIn(f.newBrowser(), fg, change, params...)
}

// forgeIn is like forge, but in the browser b.
func (f federation) forgeIn(b *browser, fg *forger, change func(map[string]any), params ...string) reply {
	f.t.Helper()
	fg.change = change
	return f.answer(b, fg, f.begin(b, params...))
}

// answer sends the browser back with fg's response to the request with the parameters sent.
func (f federation) answer(b *browser, fg *forger, sent url.Values) reply {
	f.t.Helper()
	fg.nonce = sent.Get("nonce")
	answer := url.Values{"state": {sent.Get("state")}, "code": {"c"}}
	return b.get(idp.Upstream{Issuer: fg.url}.Callback() + "?" + answer.Encode())
}

// TestUpstreamMixUp shows that selvage refuses an honest provider's code in the response to an
// attempt at a hostile provider. Otherwise, the hostile provider could send the browser to the
// honest provider and receive its code from selvage (RFC 9700, section 4.4).
func TestUpstreamMixUp(t *testing.T) {
	hostile := newForger(t)
	hostile.change = func(map[string]any) {}
	f := federate(t, func(in *idp.UpstreamInput) {
		in.Issuer, in.ClientID, in.Secret = &hostile.url, new("me"), new("")
	})

	for _, path := range []string{f.callback(), idp.CallbackPath, f.callback() + "/", "/login/upstream/callback"} {
		b := f.newBrowser()
		sent := f.begin(b)
		uri, own := sent.Get("redirect_uri"), f.url+f.u.Callback()
		if uri != own {
			t.Fatalf("the redirect URI is %q, want that of the attempt's provider, %q", uri, own)
		}
		if strings.HasPrefix(f.url+path, uri) {
			t.Fatalf("the path %s belongs to the attempt's provider, want another path", path)
		}

		response := url.Values{"state": {sent.Get("state")}, "code": {"honest"}}
		got := b.get(path + "?" + response.Encode())
		if got.status < 400 {
			t.Errorf("a response at %s: status %d, want an error", path, got.status)
		}
		wantParam(t, "a response at "+path, got, "code", "")
	}
	if n := hostile.redeemed.Load(); n != 0 {
		t.Errorf("the hostile provider got %d codes, want none", n)
	}
}

// federateWith returns a federation in which anyone may sign up with the provider fg.
func federateWith(t *testing.T, fg *forger) federation {
	t.Helper()
	f := federate(t, func(in *idp.UpstreamInput) {
		in.SignUp, in.Issuer = new(true), &fg.url
		in.ClientID, in.Secret = new("me"), new("")
	})
	f.openRegistration()
	return f
}

// TestUpstreamMaxAge shows that an app's max_age and prompt=login also apply to the login at the
// provider. A provider that does not report the time of its login is trusted.
func TestUpstreamMaxAge(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)

	for _, tt := range []struct {
		name       string
		request    []string
		signedIn   time.Duration // time since the login at the provider
		wantStatus int           // 303 means that the app gets a code
	}{
		{name: "a day ago", signedIn: 24 * time.Hour, wantStatus: http.StatusSeeOther},
		{
			name:       "half of max_age ago",
			request:    []string{"max_age", "3600"},
			signedIn:   30 * time.Minute,
			wantStatus: http.StatusSeeOther,
		},
		{
			name:       "twice max_age ago",
			request:    []string{"max_age", "3600"},
			signedIn:   2 * time.Hour,
			wantStatus: http.StatusBadGateway,
		},
		{
			name:       "now, with prompt=login",
			request:    []string{"prompt", "login"},
			wantStatus: http.StatusSeeOther,
		},
		{
			name:       "5 minutes ago, with prompt=login",
			request:    []string{"prompt", "login"},
			signedIn:   5 * time.Minute,
			wantStatus: http.StatusBadGateway,
		},
	} {
		got := f.forge(fg, func(claims map[string]any) {
			claims["auth_time"] = time.Now().Add(-tt.signedIn).Unix()
		}, tt.request...)
		wantStatus(t, tt.name, got, tt.wantStatus)
		if tt.wantStatus == http.StatusSeeOther {
			wantCode(t, tt.name, got)
		} else {
			wantParam(t, tt.name, got, "code", "")
		}
	}

	wantCode(t, "without auth_time", f.forge(fg, func(map[string]any) {}, "prompt", "login"))

	for _, tt := range []struct{ param, value, wantMaxAge string }{
		{param: "max_age", value: "3600", wantMaxAge: "3600"},
		{param: "prompt", value: "login", wantMaxAge: "0"},
		{param: "state", value: "x", wantMaxAge: ""},
	} {
		sent := f.begin(f.newBrowser(), tt.param, tt.value)
		if got := sent.Get("max_age"); got != tt.wantMaxAge {
			t.Errorf("%s=%s: the max_age sent to the provider is %q, want %q", tt.param, tt.value, got, tt.wantMaxAge)
		}
	}
}

// TestUpstreamToken shows which ID tokens of a provider are rejected.
func TestUpstreamToken(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	wantCode(t, "a valid token", f.forge(fg, func(map[string]any) {}))

	for name, change := range map[string]func(map[string]any){
		"a different nonce":     func(c map[string]any) { c["nonce"] = "x" },
		"no nonce":              func(c map[string]any) { delete(c, "nonce") },
		"a different issuer":    func(c map[string]any) { c["iss"] = f.up.url + "/" },
		"a different audience":  func(c map[string]any) { c["aud"] = "you" },
		"two audiences":         func(c map[string]any) { c["aud"] = []string{"me", "you"} },
		"a different party":     func(c map[string]any) { c["azp"] = "you" },
		"an expiry in the past": func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"no subject":            func(c map[string]any) { delete(c, "sub") },
		"a wrong at_hash":       func(c map[string]any) { c["at_hash"] = "x" },
		"a different signature": func(map[string]any) { fg.signer = newKey(t, jose.ES256) },
	} {
		got := f.forge(fg, change)
		wantStatus(t, "a token with "+name, got, http.StatusBadGateway)
		wantParam(t, "a token with "+name, got, "code", "")
		fg.signer = fg.key
	}
}

// TestUpstreamIssuerChanged shows that a link is valid only for the issuer that confirmed the
// account. Another issuer may use the same subject for another person.
func TestUpstreamIssuerChanged(t *testing.T) {
	fg, other := newForger(t), newForger(t)
	f := federateWith(t, fg)
	mallory := f.subject(f.forge(fg, func(map[string]any) {}))
	if mallory == "" {
		t.Fatal("the login failed")
	}

	setIssuer := func(issuer string) {
		_, err := f.idp.Upstreams.Update(t.Context(), f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &issuer})
		must(t, err)
	}

	setIssuer(other.url)
	eve := f.subject(f.forge(other, func(c map[string]any) { c["email"] = "eve@example.com" }))
	if eve == "" || eve == mallory {
		t.Errorf("the same subject at another issuer signs in to %q, want a new account", eve)
	}

	setIssuer(fg.url)
	if again := f.subject(f.forge(fg, func(map[string]any) {})); again != mallory {
		t.Errorf("with the first issuer again, the login signs in %q, want %q", again, mallory)
	}
}
