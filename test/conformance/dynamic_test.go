package conformance

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/selvage/selvage/test/harness"
)

// newDynamicProvider returns a provider that lets the plan's clients register themselves. The
// provider may fetch their documents from this machine.
func newDynamicProvider(t *testing.T) *provider {
	t.Helper()
	op := newProviderOf(t, harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}}))
	op.CLI(t, "", "project", "update", op.ID, "--client-registration", "token")
	made := op.CLI(t, "", "client-registration", "token", "create", "--project", op.ID)
	op.initial = harness.Bearer(made["token"].(string))
	harness.Eventually(t, time.Minute, "the registration endpoint", func() error {
		op.metadata = op.Get(t, "/.well-known/openid-configuration").Want(t, 200).Object(t)
		if op.metadata["registration_endpoint"] == nil {
			return errors.New("the metadata has no registration_endpoint")
		}
		return nil
	})
	return op
}

// members holds the members of a JSON object, such as a registration.
type members = map[string]any

// newKeyPair returns a new RSA key with a new key ID.
func newKeyPair(m *module) jose.JSONWebKey {
	m.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		m.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: rand.Text(), Algorithm: "RS256", Use: "sig"}
}

// mustJSON returns v as JSON.
func mustJSON(m *module, v any) []byte {
	m.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		m.Fatal(err)
	}
	return text
}

// wantMore returns an error unless after contains all names in before, and at least one other name.
func wantMore(before, after map[string]bool) error {
	for name := range before {
		if !after[name] {
			return fmt.Errorf("the key %s is gone", name)
		}
	}
	if len(after) == len(before) {
		return errors.New("there is no new key")
	}
	return nil
}

// publicKeys returns a key set with the public part of a key.
func publicKeys(key jose.JSONWebKey) jose.JSONWebKeySet {
	return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}}
}

// clientMetadata returns the metadata with which a client of the plan registers. The client
// authenticates with private_key_jwt. more adds or replaces members; a nil value removes a member.
func (m *module) clientMetadata(key jose.JSONWebKey, more members) members {
	body := members{
		"client_name": "Conformance", "grant_types": []string{"authorization_code"}, "response_types": []string{"code"},
		"jwks": publicKeys(key), "token_endpoint_auth_method": "private_key_jwt",
		"redirect_uris": []string{harness.RedirectURI}, "contacts": []string{"certification@example.com"},
	}
	maps.Copy(body, more)
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	return body
}

// register registers a client, and unregisters it at the end of the module. It makes the same
// checks as the suite.
func (m *module) register(more members) *harness.Client {
	m.Helper()
	c, _ := m.registerWith(newKeyPair(m), more)
	return c
}

// registerWith is like register, but registers this key for the client. It also returns the
// response.
func (m *module) registerWith(key jose.JSONWebKey, more members) (*harness.Client, members) {
	m.Helper()
	body := m.clientMetadata(key, more)
	a := m.op.Post(m, m.op.endpoint(m, "registration_endpoint"), m.op.initial, harness.JSON(body)).Want(m, 201)
	m.check(isJSON(a), "Content-Type of a registration = %q, want application/json", a.Header.Get("Content-Type"))
	made := a.Object(m)
	uri, _ := made["registration_client_uri"].(string)
	token, _ := made["registration_access_token"].(string)
	id, _ := made["client_id"].(string)
	if uri == "" || token == "" || id == "" {
		m.Fatalf("the registration %s lacks credentials", a.Body)
	}

	redirects := made["redirect_uris"].([]any)
	c := &harness.Client{Project: m.op.Project, ID: id, Redirect: redirects[0].(string), AuthMethod: "private_key_jwt"}
	m.keys[id] = key
	m.Cleanup(func() { m.op.Do(m, "DELETE", uri, harness.Bearer(token)).Want(m, 204) })
	return c, made
}

// dynamic returns a module that registers two clients and then runs another module with them. more
// adds or replaces members of their registrations.
func dynamic(run func(*module), more members) func(*module) {
	return func(m *module) {
		m.asClient(m.register(more))
		m.op.second = m.register(more)
		run(m)
	}
}

// asClient makes c the client of the module.
func (m *module) asClient(c *harness.Client) {
	op := *m.op
	op.basic = c
	m.op = &op
}

// wantWrong checks that a registration is refused with one of the codes.
func (m *module) wantWrong(more members, codes ...string) {
	m.Helper()
	a := m.op.Post(m, m.op.endpoint(m, "registration_endpoint"), m.op.initial,
		harness.JSON(m.clientMetadata(newKeyPair(m), more))).Want(m, 400)
	m.check(isJSON(a), "Content-Type of an error = %q, want application/json", a.Header.Get("Content-Type"))
	got := a.Object(m)["error"]
	for _, code := range codes {
		if got == code {
			return
		}
	}
	m.Errorf("error = %v, want one of %q", got, codes)
}

// assertion returns a client assertion for a client that registered itself.
func (m *module) assertion(id, audience string) string {
	m.Helper()
	return m.signed(m.keys[id], map[string]any{"iss": id, "sub": id, "aud": audience, "jti": rand.Text(),
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()})
}

// signed signs claims with a key, and returns the JWT.
func (m *module) signed(key jose.JSONWebKey, claims any) string {
	m.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, nil)
	if err != nil {
		m.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		m.Fatal(err)
	}
	return text
}

// documents is a server with the files that a module publishes for the provider.
type documents struct {
	url string

	mu    sync.Mutex
	files map[string][]byte
}

// publish starts a server on this machine, which has no files yet.
func (m *module) publish() *documents {
	d := &documents{files: make(map[string][]byte)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		body, ok := d.files[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(body)
	}))
	m.Cleanup(srv.Close)
	d.url = strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	return d
}

// put publishes body at path and returns its URL.
func (d *documents) put(path string, body []byte) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[path] = body
	return d.url + path
}

// userInfoRS256 checks a signed userinfo response (OpenID Connect Core, section 5.3.2).
func userInfoRS256(m *module) {
	m.check(m.op.offers("userinfo_signing_alg_values_supported", "RS256"), "the metadata offers no signed userinfo")
	m.asClient(m.register(members{"userinfo_signed_response_alg": "RS256"}))
	r := m.request()
	s := r.redeem(r.form(r.code(r.answer())))
	a := m.op.Get(m, m.op.endpoint(m, "userinfo_endpoint"), harness.Bearer(s.AccessToken)).Want(m, 200)
	m.check(strings.HasPrefix(a.Header.Get("Content-Type"), "application/jwt"), "Content-Type of userinfo = %q",
		a.Header.Get("Content-Type"))

	claims := m.verify(string(a.Body), jose.RS256)
	m.check(claims["sub"] == s.sub() && claims["iss"] == m.op.metadata["issuer"] && claims["aud"] == m.op.basic.ID,
		"userinfo has the claims %v", claims)
	m.check(claims["nonce"] == nil, "userinfo has a nonce")
}

// redirectURIMissing registers two redirect URIs and sends a request without one.
func redirectURIMissing(m *module) {
	m.asClient(m.register(members{"redirect_uris": []string{harness.RedirectURI, harness.RedirectURI + "/2"}}))
	r := m.request()
	r.Del("redirect_uri")
	m.browser.Open(m, r.url()).WantErrorPage(m, 400)
}

// redirectURIQuery registers a redirect URI with a query, which the response keeps.
func redirectURIQuery(m *module) {
	m.asClient(m.register(members{"redirect_uris": []string{harness.RedirectURI + "?foo=bar"}}))
	r := m.request()
	v := r.answer()
	m.check(v.Get("foo") == "bar", "the response %v lacks the parameter of the redirect URI", v)
	m.userInfo(r.redeem(r.form(r.code(v))))
}

// otherRedirectURI returns a module that registers one redirect URI and uses another.
func otherRedirectURI(registered, used string) func(*module) {
	return func(m *module) {
		m.asClient(m.register(members{"redirect_uris": []string{registered}}))
		m.browser.Open(m, m.request("redirect_uri", used).url()).WantErrorPage(m, 400)
	}
}

func redirectURIFragment(m *module) {
	m.wantWrong(members{"redirect_uris": []string{harness.RedirectURI + "#foobar"}}, "invalid_redirect_uri")
}

// dynamicDiscovery checks the metadata of a provider with registration.
func dynamicDiscovery(m *module) {
	endpoint := m.op.endpoint(m, "registration_endpoint")
	m.check(endpoint == m.op.Issuer()+"oauth/register", "registration_endpoint = %q", endpoint)
	discovery(m)
}

// logoURI registers a logo, which the login page must show.
func logoURI(m *module) {
	var logo bytes.Buffer
	if err := png.Encode(&logo, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		m.Fatal(err)
	}
	m.asClient(m.register(members{"logo_uri": m.publish().put("/logo.png", logo.Bytes())}))
	p := m.browser.Open(m, m.request().url())
	shown := m.op.Get(m, p.Attribute(m, "brand-logo", "src")).Want(m, 200)
	m.check(shown.Header.Get("Content-Type") == "image/png", "the logo has the Content-Type %q",
		shown.Header.Get("Content-Type"))
}

// linkURI returns a module that registers a link. The login page must show the link in the element
// with this ID.
func linkURI(member, id string) func(*module) {
	return func(m *module) {
		const link = "https://rp.example/link"
		m.asClient(m.register(members{member: link}))
		got := m.browser.Open(m, m.request().url()).Attribute(m, id, "href")
		m.check(got == link, "the page links to %q, want %q", got, link)
	}
}

// jwksURI registers the URL of the keys instead of the keys.
func jwksURI(m *module) {
	key := newKeyPair(m)
	at := m.publish().put("/jwks", mustJSON(m, publicKeys(key)))
	c, _ := m.registerWith(key, members{"jwks": nil, "jwks_uri": at})
	m.asClient(c)
	m.request().flow()
}

// sectorURI returns a module that registers a client for pairwise subjects, with the URL of a list
// of redirect URIs. The list contains the client's redirect URI only if good is set.
func sectorURI(good bool) func(*module) {
	return func(m *module) {
		m.check(m.op.offers("subject_types_supported", "pairwise"), "the metadata offers no pairwise subjects")
		listed := harness.RedirectURI
		if !good {
			listed += "/other"
		}
		more := members{"subject_type": "pairwise",
			"sector_identifier_uri": m.publish().put("/redirect_uris.json", mustJSON(m, []string{listed}))}
		if !good {
			m.wantWrong(more, "invalid_client_metadata")
			return
		}
		m.register(more)
	}
}

// rotateKeys rotates the keys of a provider. It checks that the provider then publishes a new key,
// in addition to the old keys.
func rotateKeys(m *module) {
	s := harness.Start(m)
	names := func() map[string]bool {
		var set jose.JSONWebKeySet
		s.Get(m, "/oauth/jwks").Want(m, 200).Read(m, &set)
		all := make(map[string]bool)
		for _, k := range set.Keys {
			all[k.KeyID] = true
		}
		return all
	}
	before := names()
	s.Command(m, "", "ring", "rotate", "RS256", "--now")
	harness.WithinASecond(m, "the new key", func() error { return wantMore(before, names()) })
}

// keyRotation changes the client's keys between a login and a refresh.
func keyRotation(m *module) {
	key, site := newKeyPair(m), m.publish()
	c, _ := m.registerWith(key, members{
		"jwks":        nil,
		"jwks_uri":    site.put("/jwks", mustJSON(m, publicKeys(key))),
		"grant_types": []string{"authorization_code", "refresh_token"},
	})
	m.asClient(c)

	r := m.request("scope", "openid offline_access", "prompt", "consent")
	code := r.code(r.answer())
	first := r.redeem(r.form(code))

	// Wait after the change, as the suite does, because the provider does not read keys again
	// immediately.
	m.keys[c.ID] = newKeyPair(m)
	site.put("/jwks", mustJSON(m, publicKeys(m.keys[c.ID])))
	m.await(time.Now().Add(6 * time.Second))

	again := r
	again.Values = url.Values{}
	second := again.redeem(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.RefreshToken}})
	m.check(second.sub() == first.sub(), "sub = %s after the refresh, %s before", second.sub(), first.sub())
	m.userInfo(second)
}

// requestURIUnsigned is skipped, because the provider does not support unsigned request objects.
func requestURIUnsigned(m *module) {
	m.check(m.op.metadata["request_uri_parameter_supported"] == true, "the metadata offers no request_uri")
	m.onlySigned()
}

// requestURISigned passes a signed request by reference. As in the suite, the registered URL has a
// fragment.
func requestURISigned(m *module) {
	key, site := newKeyPair(m), m.publish()
	uri := site.put("/requesturi/"+rand.Text(), nil) + "#" + hashOf(rand.Text())
	c, _ := m.registerWith(key, members{"request_uris": []string{uri}, "request_object_signing_alg": "RS256"})
	m.asClient(c)

	r := m.request()
	claims := map[string]any{"iss": c.ID, "aud": m.op.metadata["issuer"]}
	for name := range r.Values {
		claims[name] = r.Get(name)
	}
	u, err := url.Parse(uri)
	if err != nil {
		m.Fatal(err)
	}
	site.put(u.Path, []byte(m.signed(key, claims)))

	sent := request{
		m:      m,
		client: c,
		Values: url.Values{
			"client_id":     {c.ID},
			"response_type": {"code"},
			"scope":         {"openid"},
			"request_uri":   {uri},
		},
	}
	page := m.browser.Open(m, sent.url())
	code := r.code(m.parameters(m.signIn(page)))
	m.userInfo(r.redeem(r.form(code)))
}

// assertionWithIssuer sends an assertion whose audience is the issuer.
func assertionWithIssuer(m *module) {
	m.asClient(m.register(nil))
	r := m.request()
	form := r.form(r.code(r.answer()))
	form.Set("client_assertion", m.assertion(m.op.basic.ID, m.op.Issuer()))
	form.Set("client_assertion_type", assertionType)
	r.tokens(m.op.Post(m, m.op.endpoint(m, "token_endpoint"), harness.Form(form)))
}

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// initiateLogin registers the URL at which third parties start a login, and reads it back.
func initiateLogin(m *module) {
	const uri = "https://rp.example/initiate_login"
	_, made := m.registerWith(newKeyPair(m), members{"initiate_login_uri": uri})
	m.check(made["initiate_login_uri"] == uri, "initiate_login_uri = %v, want %s", made["initiate_login_uri"], uri)

	a := m.op.Get(m, made["registration_client_uri"].(string),
		harness.Bearer(made["registration_access_token"].(string))).Want(m, 200)
	m.check(isJSON(a), "Content-Type of the configuration = %q", a.Header.Get("Content-Type"))
	m.check(a.Object(m)["initiate_login_uri"] == uri, "the configuration is %s", a.Body)
}

func initiateLoginNoHTTPS(m *module) {
	m.wantWrong(members{"initiate_login_uri": "http://rp.example/initiate_login"}, "invalid_client_metadata")
}
