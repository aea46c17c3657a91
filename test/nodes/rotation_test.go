package nodes

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// turns is how many times the signing key changes under load.
const turns = 3

// askEvery is the interval at which a client asks a node for tokens. It is short enough that tokens
// are created at every stage of a key change, and long enough to leave CPU time for other tests.
const askEvery = 25 * time.Millisecond

// TestRotationUnderLoad shows that both nodes can create tokens while the keys change every six
// seconds. A client that caches the JWKS as long as permitted can always verify the tokens. Each
// node accepts every token of the other.
func TestRotationUnderLoad(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	t.Parallel()
	quick := harness.Config{Env: []string{"SELVAGE_KEYS__PUBLISH=6s", "SELVAGE_KEYS__SIGNING_ROTATION=6s",
		"SELVAGE_KEYS__SEALING_ROTATION=6s"}}

	n := harness.StartNodes(t, nil, quick, quick)
	p := n.NewProject(t)
	c := p.NewClient(t, "service", "--access-token", "jwt", "--scope", "Voice")
	v := &verifier{server: n.Server, kids: make(map[string]bool)}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	var wg sync.WaitGroup
	for i, maker := range n.Each {
		l := login{project: p, client: c}
		wg.Go(func() {
			tick := time.NewTicker(askEvery)
			defer tick.Stop()
			for ; ctx.Err() == nil && !v.turned(turns); <-tick.C {
				token := grant(t, l.at(maker))
				v.verify(t, token)
				n.Each[1-i].Get(t, p.LaML("/Recordings"), harness.Bearer(token)).Want(t, 200)
				sat := l.at(maker).NewSAT(t, "ada").Token
				n.Each[1-i].Get(t, "/subscriber/info", harness.Bearer(sat)).Want(t, 200)
			}
		})
	}

	wg.Wait()
	if !v.turned(turns) {
		t.Errorf("tokens were signed with %d keys, want %d", len(v.kids), turns+1)
	}
}

// A verifier caches a JWKS for as long as its Cache-Control permits. To verify a token with an
// unknown key, it fetches the JWKS again once.
type verifier struct {
	server *harness.Server

	mu      sync.Mutex
	set     jose.JSONWebKeySet
	expires time.Time
	kids    map[string]bool // keys that have signed tokens
}

// turned reports whether more than n keys have signed tokens.
func (v *verifier) turned(n int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.kids) > n
}

func (v *verifier) verify(t *testing.T, token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Errorf("reading a token as a JWS: %v", err)
		return
	}

	kid := jws.Signatures[0].Protected.KeyID
	v.kids[kid] = true
	if time.Now().After(v.expires) || len(v.set.Key(kid)) == 0 {
		v.fetch(t)
	}

	if len(v.set.Key(kid)) == 0 {
		t.Errorf("the key %s is not published", kid)
		return
	}
	if _, err := jws.Verify(v.set.Key(kid)[0]); err != nil {
		t.Errorf("verifying a token: %v", err)
	}
}

var maxAge = regexp.MustCompile(`max-age=(\d+)`)

func (v *verifier) fetch(t *testing.T) {
	a := v.server.Get(t, "/oauth/jwks").Want(t, http.StatusOK)
	v.set = jose.JSONWebKeySet{}
	if err := json.Unmarshal(a.Body, &v.set); err != nil {
		t.Errorf("reading the JWKS: %v", err)
	}

	found := maxAge.FindStringSubmatch(a.Header.Get("Cache-Control"))
	if found == nil {
		t.Errorf("the JWKS has the Cache-Control %q, want a max-age", a.Header.Get("Cache-Control"))
		return
	}
	seconds, _ := strconv.Atoi(found[1]) // cannot fail, because the pattern matches only digits
	v.expires = time.Now().Add(time.Duration(seconds) * time.Second)
	if !slices.ContainsFunc(v.set.Keys, func(k jose.JSONWebKey) bool { return k.Algorithm == "ES256" }) {
		t.Error("the JWKS has no ES256 key")
	}
}
