package attack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/test/harness"
)

// A victim is a client whose subscriber holds a valid JWT access token for userinfo and
// recordings.
type victim struct {
	*harness.Client
	sub    harness.Subscriber
	tokens harness.Tokens
	claims map[string]any
}

func newVictim(t *testing.T) victim {
	t.Helper()
	p := project(t)
	c := p.NewClient(t, "web", "--access-token", "jwt", "--scope", "openid,profile,email,offline_access,Voice")
	v := victim{Client: c, sub: p.NewSubscriber(t)}
	v.tokens, _ = v.SignIn(t, v.sub, loginScope+" Voice")
	v.claims = claimsOf(t, v.tokens.AccessToken)
	return v
}

// wantAccepted checks that the endpoints accept a valid token. Otherwise, refusals of other tokens
// would prove nothing.
func (v victim) wantAccepted(t *testing.T, token string) {
	t.Helper()
	for _, path := range []string{"/oauth/userinfo", v.LaML("/Recordings")} {
		v.Get(t, path, harness.Bearer(token)).Want(t, 200)
	}
	if o := v.Introspect(t, token).Want(t, 200).Object(t); o["active"] != true {
		t.Fatalf("introspection of a valid token returned %v, want active: true", o)
	}
}

// wantRefused checks that endpoints of each API refuse a token, and that introspection reports it as
// inactive.
func (v victim) wantRefused(t *testing.T, what, token string) {
	t.Helper()
	for _, path := range []string{"/oauth/userinfo", "/subscriber/info", v.LaML("/Recordings"),
		"/api/fabric/resources/subscribers"} {
		a := v.Get(t, path, harness.Bearer(token))
		if a.Status != 401 || !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer") &&
			path == "/oauth/userinfo" {
			t.Errorf("%s at %s returned %d %s (%s), want 401", what, path, a.Status, a.Body,
				a.Header.Get("WWW-Authenticate"))
		}
	}
	v.Post(t, "/oauth/userinfo", harness.Bearer(token)).Want(t, 401)
	if o := v.Introspect(t, token).Want(t, 200).Object(t); o["active"] != false {
		t.Errorf("%s: introspection returned %v, want active: false", what, o)
	}
}

// TestJ01NoSignature shows that a token without a signature, or with a wrong signature, is refused.
func TestJ01NoSignature(t *testing.T) {
	v := newVictim(t)
	parts := strings.Split(v.tokens.AccessToken, ".")
	v.wantAccepted(t, v.tokens.AccessToken)
	for _, alg := range []string{"none", "None", "NONE", "", "HS256", "ES256"} {
		head := part(map[string]string{"alg": alg, "typ": "at+jwt"})
		for _, signature := range []string{"", ".", ".AAAA", "." + parts[2]} {
			v.wantRefused(t, "alg "+alg, head+"."+parts[1]+signature)
		}
	}
	v.wantRefused(t, "a truncated signature", parts[0]+"."+parts[1]+"."+parts[2][:20])
	v.wantRefused(t, "changed claims", parts[0]+"."+part(with(v.claims, "sub", "x"))+"."+parts[2])
}

// TestJ03KeyIDs shows that no key ID makes a foreign signature valid.
func TestJ03KeyIDs(t *testing.T) {
	v, evil := newVictim(t), newAttacker(t)
	for _, kid := range []any{"../../dev/null", "' OR 1=1--", strings.Repeat("k", 10<<10), []string{"x"}, 1,
		nil, ""} {
		head := map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": kid}
		token := evil.sign(t, nil, v.claims)
		_, rest, _ := strings.Cut(token, ".")
		v.wantRefused(t, fmt.Sprintf("kid %.20v", kid), part(head)+"."+rest)
	}
	v.wantRefused(t, "no kid", evil.sign(t, nil, v.claims))
	known := map[jose.HeaderKey]any{"kid": kidOf(t, v.tokens.AccessToken)}
	v.wantRefused(t, "a known kid", evil.sign(t, known, v.claims))
}

func kidOf(t *testing.T, token string) string {
	t.Helper()
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	return jws.Signatures[0].Header.KeyID
}

// TestJ04ForeignKeys shows that the server ignores a key in a token's header, and does not fetch a
// key from an address in the header.
func TestJ04ForeignKeys(t *testing.T) {
	v, evil, tr := newVictim(t), newAttacker(t), newTrap(t)
	jwk := jose.JSONWebKey{Key: &evil.key.PublicKey, KeyID: "evil", Algorithm: "ES256", Use: "sig"}
	for name, value := range map[jose.HeaderKey]any{
		"jku": tr.URL + "/jwks",
		"x5u": tr.URL + "/cert",
		"x5c": []string{"AAAA"},
		"jwk": jwk,
	} {
		v.wantRefused(t, string(name), evil.sign(t, map[jose.HeaderKey]any{name: value, "kid": "evil"}, v.claims))
		v.wantRefused(t, string(name)+" with the server's kid",
			evil.sign(t, map[jose.HeaderKey]any{name: value, "kid": kidOf(t, v.tokens.AccessToken)}, v.claims))
	}
	tr.wantNoCalls(t)
}

// TestJ08Claims shows that the server checks claims even if they are signed with its own key.
func TestJ08Claims(t *testing.T) {
	v := newVictim(t)
	r := ring(t, v.Server)
	sign := func(typ string, claims any) string {
		token, err := r.Sign(keys.ES256, typ, claims)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}

	v.wantAccepted(t, sign("at+jwt", v.claims))
	now := time.Now().Unix()
	tests := []struct {
		name  string
		value any
	}{
		{"exp", now - 1}, {"exp", nil}, {"exp", "9999999999"}, {"exp", -1}, {"exp", 0}, {"exp", []int{1}},
		{"iat", now + 3600}, {"iat", nil}, {"nbf", now + 3600},
		{"iss", strings.TrimSuffix(v.Issuer(), "/")}, {"iss", v.Issuer() + "/"}, {"iss", nil},
		{"iss", []string{v.Issuer()}}, {"iss", "https://evil.example/"},
		{"aud", v.ID}, {"aud", nil}, {"aud", "https://evil.example"},
		{"aud", []string{"https://evil.example", "https://other.example"}},
		{"sub", 1},
		{"sid", "01900000-0000-7000-8000-000000000000"},
	}

	for _, tt := range tests {
		v.wantRefused(t, fmt.Sprintf("%s %v", tt.name, tt.value), sign("at+jwt", with(v.claims, tt.name, tt.value)))
	}

	v.wantRefused(t, "exp 1e300", sign("at+jwt", with(v.claims, "exp", json.RawMessage("1e300"))))
	for _, typ := range []string{"JWT", "", "SAT", "logout+jwt"} {
		v.wantRefused(t, "typ "+typ, sign(typ, v.claims))
	}
}

// TestJ11Confusion shows that a token is refused where a token of a different kind is required.
func TestJ11Confusion(t *testing.T) {
	v := newVictim(t)
	p := v.Project

	sat := p.NewSAT(t, "ada")
	address := p.Address(t, sat.SubscriberID)
	guest, invite := p.NewGuest(t, address), p.NewInvite(t, sat.Token, address)
	code := v.NewFlow(loginScope).Code(t, v.Browser(), v.sub)

	// Use other tokens as an access token.
	for what, token := range map[string]string{
		"a SAT's refresh token":   sat.RefreshToken,
		"a guest's refresh token": guest.RefreshToken,
		"an OAuth refresh token":  v.tokens.RefreshToken,
		"an ID token":             v.tokens.IDToken,
		"a code":                  code,
		"an API key":              p.Key,
		"a client secret":         v.Secret,
	} {
		v.wantRefused(t, what, token)
	}

	// Use other tokens as a refresh token.
	for what, token := range map[string]string{
		"a SAT":                  sat.Token,
		"a guest token":          guest.Token,
		"an invite":              invite,
		"an OAuth refresh token": v.tokens.RefreshToken,
		"an access token":        v.tokens.AccessToken,
		"a code":                 code,
	} {
		a := p.Post(t, "/api/fabric/subscribers/tokens/refresh", p.Basic(),
			harness.JSON(map[string]string{"refresh_token": token}))
		if a.Status != 422 {
			t.Errorf("%s as a fabric refresh token returned %d %s, want 422", what, a.Status, a.Body)
		}
		if token != v.tokens.RefreshToken {
			v.Refresh(t, token).WantError(t, 400, "invalid_grant")
		}
	}
	v.Refresh(t, sat.RefreshToken).WantError(t, 400, "invalid_grant")

	// Change the header or the parts of a SAT.
	sealed := strings.Split(sat.Token, ".")
	for what, change := range map[string]map[string]any{
		"typ Refresh": {"typ": "Refresh"},
		"zip":         {"zip": "DEF"},
		"alg":         {"alg": "A256KW"},
		"enc":         {"enc": "A128GCM"},
		"p2c":         {"alg": "PBES2-HS256+A128KW", "p2c": 1 << 30, "p2s": "AAAA"},
		"crit":        {"crit": []string{"x"}},
	} {
		v.wantRefused(t, "a SAT with the header "+what, changedHeader(t, sealed, change))
	}

	for i := range sealed {
		v.wantRefused(t, fmt.Sprintf("a SAT without part %d", i),
			strings.Join(append(append([]string{}, sealed[:i]...), sealed[i+1:]...), "."))
	}
}

// changedHeader returns a sealed token with changed members in its header.
func changedHeader(t *testing.T, parts []string, change map[string]any) string {
	t.Helper()
	raw, err := jose.ParseEncryptedCompact(strings.Join(parts, "."), []jose.KeyAlgorithm{jose.DIRECT},
		[]jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		t.Fatal(err)
	}
	head := map[string]any{"alg": "dir", "enc": "A256GCM", "typ": "SAT", "kid": raw.Header.KeyID}
	for name, value := range change {
		head[name] = value
	}
	return part(head) + "." + strings.Join(parts[1:], ".")
}

// TestJ15Forms shows that a valid token is accepted only in its usual form, and only once and in
// the Authorization header of a request.
func TestJ15Forms(t *testing.T) {
	v := newVictim(t)
	good := v.tokens.AccessToken
	parts := strings.Split(good, ".")
	r := ring(t, v.Server)
	nested, err := r.Sign(keys.ES256, "at+jwt", good)
	if err != nil {
		t.Fatal(err)
	}

	v.wantRefused(t, "nested", nested)
	v.wantRefused(t, "crit", part(`{"alg":"ES256","typ":"at+jwt","crit":["x"],"x":1,"kid":"`+
		kidOf(t, good)+`"}`)+"."+parts[1]+"."+parts[2])
	v.wantRefused(t, "JSON serialization",
		`{"payload":"`+parts[1]+`","signatures":[{"protected":"`+parts[0]+`","signature":"`+parts[2]+`"}]}`)
	v.wantRefused(t, "padding", good+"==")
	v.wantRefused(t, "two tokens", good+","+good)

	for _, path := range []string{"/oauth/userinfo", v.LaML("/Recordings")} {
		v.Get(t, path+"?access_token="+good).Want(t, 401)
		v.Get(t, path, harness.Bearer(good), harness.AddHeader("Authorization", "Bearer "+good)).Want(t, 401)
		v.Get(t, path, harness.Header("Authorization", "bearer "+good)).Want(t, 200) // schemes are case-insensitive
		v.Get(t, path, harness.Header("Authorization", good)).Want(t, 401)
		v.Get(t, path, harness.Header("Authorization", "Basic "+good)).Want(t, 401)
	}
	v.wantRefused(t, "16 KiB of dots", strings.Repeat(".", 16<<10))
}

// TestJ18JWKS shows that the key set contains only public signature keys, a key for each algorithm,
// and the keys of current tokens. Caches may keep the set for at most five minutes.
func TestJ18JWKS(t *testing.T) {
	v := newVictim(t)
	a := v.Get(t, "/oauth/jwks").Want(t, 200)
	var set struct{ Keys []map[string]any }
	a.Read(t, &set)

	kids, algs := map[any]bool{}, map[any]bool{}
	for _, k := range set.Keys {
		for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
			if _, ok := k[private]; ok {
				t.Errorf("the key %v contains the private part %q", k["kid"], private)
			}
		}
		if k["kty"] == "oct" || k["use"] != "sig" || kids[k["kid"]] || k["kid"] == "" {
			t.Errorf("the key %v is symmetric or not for signatures, or its kid is empty or a duplicate", k)
		}
		kids[k["kid"]], algs[k["alg"]] = true, true
	}

	for _, use := range keys.Algorithms() {
		if !algs[string(use)] {
			t.Errorf("the algorithms are %v, want %s among them", algs, use)
		}
	}

	for _, token := range []string{v.tokens.AccessToken, v.tokens.IDToken} {
		if !kids[kidOf(t, token)] {
			t.Errorf("a token was signed with the key %s, which is not published", kidOf(t, token))
		}
	}

	if got := maxAge(a); got <= 0 || got > 300 {
		t.Errorf("Cache-Control = %q, want at most 300 s", a.Header.Get("Cache-Control"))
	}
	v.Get(t, "/oauth/jwks", harness.Header("If-None-Match", a.Header.Get("ETag"))).Want(t, 304)
}

func maxAge(a harness.Answer) (seconds int) {
	for _, d := range strings.Split(a.Header.Get("Cache-Control"), ",") {
		if _, err := fmt.Sscanf(strings.TrimSpace(d), "max-age=%d", &seconds); err == nil {
			return seconds
		}
	}
	return 0
}
