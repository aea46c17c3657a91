package idp

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzRedirectURI shows that only registered URIs match. Only the port of a loopback address may
// differ.
func FuzzRedirectURI(f *testing.F) {
	for _, uri := range []string{
		"https://app.example/cb", "http://127.0.0.1:8080/cb?x=1", "http://[::1]:1/cb", "com.example.app:/cb",
		"http://[[127.0.0.1]]/cb", "http://]127.0.0.1[/cb", "http://127.0.0.1:0/cb", "http://127.0.0.1:080/cb",
		"https://app.example@evil.example/cb", "https://app.example\\@evil.example/cb", "javascript:alert(1)",
		"http://127.0.0.1:" + strings.Repeat("9", 2000) + "/", "https://" + strings.Repeat("[", 2000),
		"https://a/" + strings.Repeat("%25", 2000), strings.Repeat(":", 10_000),
	} {
		f.Add(uri, "/cb")
	}

	f.Fuzz(func(t *testing.T, uri, path string) {
		fuzzcost.Parser.Check(t, len(uri)+len(path), func() {
			c := Client{Type: Native, RedirectURIs: []string{"https://app.example/cb", "http://127.0.0.1/cb"}}
			var found problems
			c.checkURI(&found, "redirect_uri", uri)
			if !c.AllowsRedirect(uri) {
				return
			}

			if len(found) > 0 {
				t.Errorf("%q is allowed, but cannot be registered: %v", uri, found)
			}
			if uri == "https://app.example/cb" {
				return
			}
			u, err := url.Parse(uri)
			if err != nil {
				t.Fatalf("%q is allowed, but is not a URL: %v", uri, err)
			}
			u.Host = u.Hostname()
			if u.Host != "127.0.0.1" || u.Path != "/cb" || u.RawQuery != "" {
				t.Errorf("%q is allowed, want only registered URIs, at most with a different port", uri)
			}
		})
	})
}

// FuzzKeySet parses key sets in the form that clients publish. Parsing may take 3 ms for each of
// the at most 32 keys, because the curve of each key is checked.
func FuzzKeySet(f *testing.F) {
	const point = `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",` +
		`"y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`
	for _, key := range []string{
		point, `{"kty":"oct","k":"AAAA"}`, `{"kty":"OKP","crv":"Ed25519","x":"AA"}`,
		`{"kty":"RSA","n":"` + strings.Repeat("A", 1<<15) + `","e":"AQAB"}`,
		`{"kty":"RSA","n":"AQAB","e":"` + strings.Repeat("_", 1<<15) + `"}`,
		`{"kty":"RSA","n":"AQ","e":"AQ","x5c":["` + strings.Repeat(`","`, 5000) + `"]}`,
	} {
		f.Add([]byte(`{"keys":[` + key + `]}`))
	}
	f.Add([]byte(`{"keys":[` + strings.Repeat(point+",", 31) + point + `]}`))
	f.Add([]byte(`{"keys":[` + strings.Repeat("{},", 30_000) + `{}]}`))
	f.Add([]byte(`{"keys":` + strings.Repeat("[", 9_000)))

	f.Fuzz(func(t *testing.T, raw []byte) {
		bound := fuzzcost.Bound{CPU: 100 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 1 << 20, PerByte: 64}
		bound.Check(t, min(len(raw), maxKeySet), func() {
			set, err := parseKeySet(raw)
			if err != nil {
				return
			}
			if len(set) > maxKeys {
				t.Errorf("%d keys are accepted, want at most %d", len(set), maxKeys)
			}
			if len(raw) > maxKeySet {
				t.Errorf("%d bytes are accepted, want at most %d", len(raw), maxKeySet)
			}
			for _, k := range set {
				if !k.IsPublic() {
					t.Errorf("%s is accepted although it is not a public key", k.KeyID)
				}
			}
		})
	})
}

// FuzzRequestObject reads the claims of request objects, with any content that a client could sign.
func FuzzRequestObject(f *testing.F) {
	for _, raw := range []string{
		`{"iss":"c","aud":["i"],"exp":4102444800,"nbf":1,"scope":"openid","max_age":1,"claims":{"userinfo":null}}`,
		`{"aud":[` + strings.Repeat(`"a",`, 4000) + `"i"]}`, `{"exp":1e400,"nbf":-1e300}`, `{"exp":"1","nbf":[]}`,
		`{"resource":[` + strings.Repeat(`{},`, 5000) + `1]}`, `{"state":` + strings.Repeat("[", 9_000),
		`{` + strings.Repeat(`"\u0000":null,`, 1) + `"request":"x"}`,
	} {
		f.Add([]byte(raw))
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > maxObject {
			return
		}
		bound := fuzzcost.Bound{CPU: time.Millisecond, CPUPerByte: 2 * time.Microsecond, Heap: 64 << 10, PerByte: 256}
		bound.Check(t, len(raw), func() {
			var claims map[string]any
			if json.Unmarshal(raw, &claims) != nil {
				return
			}
			c := Client{ID: "c", Metadata: Metadata{RequireObject: true}}
			if c.checkObject(claims, "i", time.Unix(1000, 0)) == nil {
				if claims["iss"] != "c" {
					t.Errorf("%s is accepted, want only objects with the iss c", raw)
				}
				if claims["exp"] == nil {
					t.Errorf("%s is accepted, want only objects with an exp", raw)
				}
			}

			v, err := paramsOf(c, claims)
			if err != nil {
				return
			}
			if id := v.Get("client_id"); id != "c" {
				t.Errorf("the client_id of %s is %q, want c", raw, id)
			}
			if v.Has("iss") || v.Has("exp") {
				t.Errorf("the parameters of %s are %v, want no iss or exp", raw, v)
			}
		})
	})
}

// FuzzClaims parses the claims parameter of an authorization request.
func FuzzClaims(f *testing.F) {
	for _, raw := range []string{
		`{"userinfo":{"email":null},"id_token":{"acr":{"essential":true,"values":["2"]},"sub":{"value":"x"}}}`,
		`{"id_token":{"sub":{"values":[` + strings.Repeat(`"a",`, 4000) + `""]}}}`,
		`{"userinfo":{` + strings.Repeat(`"email":{},`, 1400) + `"a":{}}}`,
		`{"userinfo":` + strings.Repeat("[", 16_000),
	} {
		f.Add(raw)
	}

	rs := &Requests{core: &core{}}
	f.Fuzz(func(t *testing.T, raw string) {
		var asked struct {
			Userinfo map[string]any `json:"userinfo"`
			IDToken  map[string]any `json:"id_token"`
		}
		if json.Unmarshal([]byte(raw), &asked) == nil {
			_, inUserinfo := asked.Userinfo["sub"]
			_, inIDToken := asked.IDToken["sub"]
			if inUserinfo || inIDToken {
				return // resolving a subject needs the key ring
			}
		}

		bound := fuzzcost.Bound{CPU: time.Millisecond, CPUPerByte: time.Microsecond, Heap: 128 << 10, PerByte: 256}
		bound.Check(t, len(raw), func() {
			var req AuthRequest
			if err := rs.parseClaims(Client{Scopes: Scopes()}, &req, raw); err != nil {
				return
			}
			if n := len(req.Claims.Userinfo) + len(req.Claims.IDToken); n > 2*len(claimScopes) {
				t.Errorf("%q requests %d claims, want at most %d", raw, n, 2*len(claimScopes))
			}
		})
	})
}

// FuzzDeviceCookie parses the two values that browsers store: the mark of a device, and the list of
// a browser's logins.
func FuzzDeviceCookie(f *testing.F) {
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, text := range []string{
		"", "-", "- a b", id + ".1-a", id + ".." + id, id + strings.Repeat(".1", 500), strings.Repeat(".", 1<<16),
		strings.Repeat(" a", 1<<15), strings.Repeat("\u2003", 1<<12), strings.Repeat(" a", 1<<15) + "\xf7",
	} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		fuzzcost.Parser.Check(t, len(text), func() {
			_, codes, ok := parseDevice(text)
			if ok && len(codes) > deviceAccounts {
				t.Errorf("a mark with %d entries is accepted, want at most %d", len(codes), deviceAccounts)
			}
			if ok && len(text) > maxDeviceMark {
				t.Errorf("a mark of %d bytes is accepted, want at most %d", len(text), maxDeviceMark)
			}

			parsed := ParseBrowserLogins(text).String()
			if again := ParseBrowserLogins(parsed).String(); again != parsed {
				t.Errorf("%q is parsed as %q, which is parsed as %q", text, parsed, again)
			}
		})
	})
}

// FuzzUserCode reads user codes as people might type them.
func FuzzUserCode(f *testing.F) {
	for _, typed := range []string{
		"bcdf-ghjk", "BCDFGHJK", " b c d f g h j k ", strings.Repeat("-", 1<<16), strings.Repeat("\u0130", 1<<12),
		"ﬀﬀﬀﬀ", "\xff\xfe",
	} {
		f.Add(typed)
	}

	f.Fuzz(func(t *testing.T, typed string) {
		fuzzcost.Parser.Check(t, len(typed), func() {
			code, ok := ReadUserCode(typed)
			if !ok {
				return
			}
			if len(code) != userLength+1 {
				t.Errorf("%q is parsed as %q, want %d letters and a hyphen", typed, code, userLength)
			}
			if again, ok := ReadUserCode(code); !ok || again != code {
				t.Errorf("%q is parsed as %q, which is parsed as %q", typed, code, again)
			}
		})
	})
}

// FuzzScope parses the scope parameter of an authorization request.
func FuzzScope(f *testing.F) {
	for _, raw := range []string{
		"openid profile", "OPENID", "openid openid calling Voice", strings.Repeat("a ", 8000),
		strings.Repeat("openid ", 2300), strings.Repeat("\u0130 ", 5000),
	} {
		f.Add(raw)
	}

	c := Client{Scopes: Scopes()}
	f.Fuzz(func(t *testing.T, raw string) {
		fuzzcost.Parser.Check(t, len(raw), func() {
			scope, err := c.parseScope(raw)
			if err != nil {
				return
			}
			if len(scope) == 0 || len(scope) > len(Scopes()) {
				t.Errorf("%q has %d scopes, want between 1 and %d", raw, len(scope), len(Scopes()))
			}
		})
	})
}
