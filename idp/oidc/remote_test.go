package oidc_test

import (
	"crypto"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/egress"
)

// A publisher serves a client's key set.
type publisher struct {
	url  string
	hits atomic.Int64

	mu     sync.Mutex
	status int
	body   []byte
}

func newPublisher(t *testing.T) *publisher {
	p := &publisher{status: http.StatusOK}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.hits.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(p.status)
		_, _ = w.Write(p.body)
	}))
	t.Cleanup(srv.Close)
	p.url = srv.URL + "/jwks"
	return p
}

func (p *publisher) publish(status int, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.body = status, body
}

// remoteParty registers a service whose key set is published at uri.
func (w *world) remoteParty(t *testing.T, uri string) party {
	t.Helper()
	p := party{w: w, kid: "k1", alg: jose.ES256, key: newKey(t, jose.ES256)}
	p.c, _ = w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod = idp.Service, idp.AuthPrivateKeyJWT
		n.RedirectURIs, n.JWKSURI = nil, uri
	})
	return p
}

func (p party) set(t *testing.T) json.RawMessage {
	return keySet(t, "", map[string]crypto.Signer{p.kid: p.key})
}

// A standing is a provider whose clock moves only when the test moves it.
type standing struct {
	*idp.Provider
	at time.Time
}

func (w *world) standing() *standing {
	s := &standing{at: w.now()}
	c := w.idp.Config
	c.Now = func() time.Time { return s.at }
	s.Provider = idp.New(c)
	return s
}

// verify presents a valid assertion from p.
func (s *standing) verify(t *testing.T, p party) error {
	t.Helper()
	signed := p.assertion(t, "iat", s.at.Unix(), "exp", s.at.Add(time.Minute).Unix())
	return verify(t, s.Provider, idp.Assertion{JWT: signed, Audiences: []string{p.w.url + "/"}})
}

// TestRemoteKeys shows how long a published key set is cached: when new keys are noticed, when
// removed keys stop working, and how long an unreachable host is tolerated.
func TestRemoteKeys(t *testing.T) {
	w, at := newWorld(t), newPublisher(t)
	p, node := w.remoteParty(t, at.url), w.standing()
	at.publish(http.StatusOK, p.set(t))
	want := func(name string, ok bool, hits int64) {
		t.Helper()
		if err := node.verify(t, p); (err == nil) != ok || at.hits.Load() != hits {
			t.Errorf("%s: %v after %d requests for keys, want success %v after %d", name, err, at.hits.Load(),
				ok, hits)
		}
	}
	want("the first key", true, 1)
	want("the next key", true, 1)

	old := p
	p.kid, p.key = "k2", newKey(t, jose.ES256)
	at.publish(http.StatusOK, p.set(t))
	want("a new key right after the set was read", false, 1)
	node.at = node.at.Add(6 * time.Second)
	want("a new key", true, 2)
	if node.verify(t, old) == nil {
		t.Error("a removed key, after the set was read again: no error")
	}

	at.publish(http.StatusOK, keySet(t, "", map[string]crypto.Signer{}))
	node.at = node.at.Add(4 * time.Minute)
	want("a key removed a short while ago", true, 2)
	node.at = node.at.Add(2 * time.Minute)
	want("a removed key", false, 3)

	at.publish(http.StatusOK, p.set(t))
	node.at = node.at.Add(6 * time.Second)
	want("the key is published again", true, 4)
	at.publish(http.StatusInternalServerError, nil)
	node.at = node.at.Add(30 * time.Minute)
	want("the address is unreachable", true, 5)
	node.at = node.at.Add(31 * time.Minute)
	want("the address is unreachable for an hour", false, 6)
}

// TestUnknownKids shows that invented kids do not cause a flood of requests to the client's host.
func TestUnknownKids(t *testing.T) {
	w, at := newWorld(t), newPublisher(t)
	p, node := w.remoteParty(t, at.url), w.standing()
	at.publish(http.StatusOK, p.set(t))
	must(t, node.verify(t, p))

	node.at = node.at.Add(6 * time.Second)
	stranger := p
	stranger.kid, stranger.key = "made-up", newKey(t, jose.ES256)
	forged := make([]string, 100)
	for i := range forged {
		forged[i] = stranger.assertion(t)
	}

	var all sync.WaitGroup
	for _, assertion := range forged {
		all.Go(func() {
			a := idp.Assertion{JWT: assertion, Audiences: []string{w.url + "/"}}
			if err := verify(t, node.Provider, a); err == nil {
				t.Error("a made-up kid: no error")
			}
		})
	}
	all.Wait()
	if hits := at.hits.Load(); hits != 2 {
		t.Errorf("the key set was read %d times, want once at first and once for the made-up kids", hits)
	}
}

// TestBadKeySets shows that unreadable and unsuitable published key sets are rejected.
func TestBadKeySets(t *testing.T) {
	w := newWorld(t)
	huge := append([]byte(`{"keys":[`), make([]byte, 65<<10)...)
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: newKey(t, jose.ES256),
		KeyID: "k1"}}})
	must(t, err)

	for name, tt := range map[string]struct {
		status int
		body   []byte
		want   string
	}{
		"too large":     {http.StatusOK, huge, "larger than 65536 bytes"},
		"no JSON":       {http.StatusOK, []byte("<html>"), "it is not a JWKS"},
		"a redirect":    {http.StatusFound, nil, "the server returned status 302"},
		"missing":       {http.StatusNotFound, nil, "the server returned status 404"},
		"a private key": {http.StatusOK, private, "private"},
	} {

		at := newPublisher(t)
		p := w.remoteParty(t, at.url)
		at.publish(tt.status, tt.body)

		got := p.ask(p.assertion(t))
		wantInvalidClient(t, name, got)
		if !strings.Contains(got.body, tt.want) || at.hits.Load() != 1 {
			t.Errorf("%s: %s after %d requests, want %q after one", name, got.body, at.hits.Load(), tt.want)
		}
	}
}

// TestPrivateKeySets shows that key sets at private addresses are not fetched and cannot be
// registered.
func TestPrivateKeySets(t *testing.T) {
	w, at := newWorld(t), newPublisher(t)
	p := w.remoteParty(t, at.url) // registered while private addresses were allowed
	at.publish(http.StatusOK, p.set(t))

	closed := w.idp.Config
	closed.CheckURL, closed.Fetch = egress.Policy{}.Check, egress.Policy{}.Fetcher()
	node := idp.New(closed)
	err := verify(t, node, idp.Assertion{JWT: p.assertion(t), Audiences: []string{w.url + "/"}})
	if err == nil || !strings.Contains(err.Error(), "an address to which requests are not allowed") ||
		at.hits.Load() != 0 {
		t.Errorf("a key set on loopback: %v after %d requests, want none", err, at.hits.Load())
	}

	for _, uri := range []string{
		at.url, "https://169.254.169.254/jwks", "https://10.0.0.1/jwks", "https://[::1]/jwks",
		"http://app.example/jwks", "file:///etc/passwd", "https://u:p@app.example/jwks",
	} {
		_, _, err := node.Clients.Create(t.Context(), idp.Client{
			ProjectID: w.project.ID, Type: idp.Service, AuthMethod: idp.AuthPrivateKeyJWT,
			Metadata: idp.Metadata{JWKSURI: uri},
		})
		if err == nil || !strings.Contains(err.Error(), "jwks_uri") && !strings.Contains(err.Error(), "https") {
			t.Errorf("jwks_uri %s is registered: %v", uri, err)
		}
	}
}
