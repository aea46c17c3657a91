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

// newPublisher starts a publisher. With status 302, it redirects to a path without a key set.
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

// publish sets the status and body of all further responses.
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

// set returns the key set of a party.
func (p party) set(t *testing.T) json.RawMessage {
	return keySet(t, "", map[string]crypto.Signer{p.kid: p.key})
}

// A frozenProvider is a provider whose clock moves only when the test moves it.
type frozenProvider struct {
	*idp.Provider
	at time.Time
}

func (w *world) newFrozenProvider() *frozenProvider {
	s := &frozenProvider{at: w.now()}
	config := w.idp.Config
	config.Now = func() time.Time { return s.at }
	s.Provider = idp.New(config)
	return s
}

// verify presents a valid assertion from p.
func (s *frozenProvider) verify(t *testing.T, p party) error {
	t.Helper()
	signed := p.assertion(t, "iat", s.at.Unix(), "exp", s.at.Add(time.Minute).Unix())
	return verify(t, s.Provider, idp.Assertion{JWT: signed, Audiences: []string{p.w.url + "/"}})
}

// TestRemoteKeys shows how long a published key set is cached: when new keys are noticed, when
// removed keys stop working, and how long an unreachable host is tolerated.
func TestRemoteKeys(t *testing.T) {
	w, host := newWorld(t), newPublisher(t)
	p, node := w.remoteParty(t, host.url), w.newFrozenProvider()
	host.publish(http.StatusOK, p.set(t))
	wantReads := func(name string, want int64) {
		t.Helper()
		if hits := host.hits.Load(); hits != want {
			t.Errorf("%s: the key set was read %d times, want %d", name, hits, want)
		}
	}
	wantAccepted := func(name string, reads int64) {
		t.Helper()
		if err := node.verify(t, p); err != nil {
			t.Errorf("%s: %v, want no error", name, err)
		}
		wantReads(name, reads)
	}
	wantRefused := func(name string, reads int64) {
		t.Helper()
		if err := node.verify(t, p); err == nil {
			t.Errorf("%s: accepted, want an error", name)
		}
		wantReads(name, reads)
	}

	wantAccepted("the first key", 1)
	wantAccepted("the first key again", 1)

	old := p
	p.kid, p.key = "k2", newKey(t, jose.ES256)
	host.publish(http.StatusOK, p.set(t))
	wantRefused("a new key right after the set was read", 1)
	node.at = node.at.Add(6 * time.Second)
	wantAccepted("a new key", 2)
	if node.verify(t, old) == nil {
		t.Error("a removed key, after the set was read again: no error")
	}

	host.publish(http.StatusOK, keySet(t, "", map[string]crypto.Signer{}))
	node.at = node.at.Add(4 * time.Minute)
	wantAccepted("a recently removed key", 2)
	node.at = node.at.Add(2 * time.Minute)
	wantRefused("a removed key", 3)

	host.publish(http.StatusOK, p.set(t))
	node.at = node.at.Add(6 * time.Second)
	wantAccepted("the key is published again", 4)

	host.publish(http.StatusInternalServerError, nil)
	node.at = node.at.Add(30 * time.Minute)
	wantAccepted("the address is unreachable", 5)
	node.at = node.at.Add(31 * time.Minute)
	wantRefused("the address is unreachable for an hour", 6)
}

// TestUnknownKids shows that invented kids do not cause a flood of requests to the client's host.
func TestUnknownKids(t *testing.T) {
	w, host := newWorld(t), newPublisher(t)
	p, node := w.remoteParty(t, host.url), w.newFrozenProvider()
	host.publish(http.StatusOK, p.set(t))
	must(t, node.verify(t, p))

	node.at = node.at.Add(6 * time.Second)
	stranger := p
	stranger.kid, stranger.key = "made-up", newKey(t, jose.ES256)
	var requests sync.WaitGroup
	for range 100 {
		forged := idp.Assertion{JWT: stranger.assertion(t), Audiences: []string{w.url + "/"}}
		requests.Go(func() {
			if err := verify(t, node.Provider, forged); err == nil {
				t.Error("a made-up kid: no error")
			}
		})
	}
	requests.Wait()
	if hits := host.hits.Load(); hits != 2 {
		t.Errorf("the key set was read %d times, want once at first and once for the made-up kids", hits)
	}
}

// TestBadKeySets shows that unreadable and unsuitable published key sets are rejected.
func TestBadKeySets(t *testing.T) {
	w := newWorld(t)
	huge := append([]byte(`{"keys":[`), make([]byte, 65<<10)...)
	private, err := json.Marshal(jose.JSONWebKeySet{
		Keys: []jose.JSONWebKey{{Key: newKey(t, jose.ES256), KeyID: "k1"}},
	})
	must(t, err)

	for name, tt := range map[string]struct {
		status   int
		body     []byte
		wantText string
	}{
		"too large":     {http.StatusOK, huge, "larger than 65536 bytes"},
		"not JSON":      {http.StatusOK, []byte("<html>"), "it is not a JWKS"},
		"a redirect":    {http.StatusFound, nil, "the server returned status 302"},
		"missing":       {http.StatusNotFound, nil, "the server returned status 404"},
		"a private key": {http.StatusOK, private, "private"},
	} {
		host := newPublisher(t)
		p := w.remoteParty(t, host.url)
		host.publish(tt.status, tt.body)
		got := p.ask(p.assertion(t))
		wantInvalidClient(t, name, got)
		wantText(t, name, got, tt.wantText)
		if hits := host.hits.Load(); hits != 1 {
			t.Errorf("%s: %d requests for keys, want 1", name, hits)
		}
	}
}

// TestPrivateKeySets shows that key sets at private addresses are not fetched and cannot be
// registered.
func TestPrivateKeySets(t *testing.T) {
	w, host := newWorld(t), newPublisher(t)
	p := w.remoteParty(t, host.url) // registered while private addresses were allowed
	host.publish(http.StatusOK, p.set(t))

	closed := w.idp.Config
	closed.CheckURL, closed.Fetch = egress.Policy{}.Check, egress.Policy{}.Fetcher()
	node := idp.New(closed)
	err := verify(t, node, idp.Assertion{JWT: p.assertion(t), Audiences: []string{w.url + "/"}})
	if !strings.Contains(text(err), "an address to which requests are not allowed") {
		t.Errorf("a key set on loopback: %v, want an error about its address", err)
	}
	if hits := host.hits.Load(); hits != 0 {
		t.Errorf("a key set on loopback was requested %d times, want never", hits)
	}

	for _, uri := range []string{
		host.url, "https://169.254.169.254/jwks", "https://10.0.0.1/jwks", "https://[::1]/jwks",
		"http://app.example/jwks", "file:///etc/passwd", "https://u:p@app.example/jwks",
	} {
		_, _, err := node.Clients.Create(t.Context(), idp.Client{
			ProjectID:  w.project.ID,
			Type:       idp.Service,
			AuthMethod: idp.AuthPrivateKeyJWT,
			Metadata:   idp.Metadata{JWKSURI: uri},
		})
		wantProblem(t, "registering "+uri, err, "jwks_uri")
	}
}
