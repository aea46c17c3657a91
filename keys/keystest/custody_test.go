package keystest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

// A module is a Custody that keeps private keys to itself, like a hardware module. It returns only
// names, public keys and signatures.
type module struct {
	mu   sync.Mutex
	keys map[string]crypto.Signer
	away bool
}

var _ keys.Custody = (*module)(nil)

func (m *module) Make(_ context.Context, use keys.Use) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errors.New("the module is unavailable")
	}

	var key crypto.Signer
	var err error
	switch use {
	case keys.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case keys.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}

	name := fmt.Sprintf("module/%d", len(m.keys))
	m.keys[name] = key
	return []byte(name), err
}

func (m *module) Open(ctx context.Context, use keys.Use, handle []byte) (crypto.Signer, error) {
	if !strings.HasPrefix(string(handle), "module/") {
		return keys.PKCS8{}.Open(ctx, use, handle) // a key from before the module was used
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.keys[string(handle)]
	if m.away || key == nil {
		return nil, fmt.Errorf("the module has no key %s", handle)
	}
	return inside{m, string(handle), key.Public()}, nil
}

// inside is the signer for a key in a module.
type inside struct {
	m      *module
	name   string
	public crypto.PublicKey
}

func (k inside) Public() crypto.PublicKey { return k.public }

func (k inside) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	return k.m.keys[k.name].Sign(random, digest, opts)
}

// TestCustody shows that a ring whose keys are in memory can be moved to a module.
func TestCustody(t *testing.T) {
	rows, clock := openStore(t), &hand{}
	plain := clock.node(rows)
	token, err := open(t, plain).Sign(keys.RS256, "JWT", claims{"alice"})
	check(t, err)

	with := plain
	m := &module{keys: make(map[string]crypto.Signer)}
	with.Custody = m
	r, other := open(t, with), open(t, with)
	for range 2 { // the next keys were created before the module was used
		for _, use := range keys.Algorithms() {
			_, err := r.Rotate(t.Context(), use, true)
			check(t, err)
		}
	}

	check(t, other.Sync(t.Context()))
	if got := len(m.keys); got != 2*len(keys.Algorithms()) {
		t.Errorf("the module has %d keys, want one current and one next of each algorithm", got)
	}
	if _, ok := other.VerifyJWS(token, "JWT"); !ok {
		t.Error("a signature from before the module is refused")
	}

	var set jose.JSONWebKeySet
	check(t, json.Unmarshal(other.JWKS().Body, &set))
	for _, use := range keys.Algorithms() {
		token, err := r.Sign(use, "JWT", claims{"alice"})
		check(t, err)
		if _, ok := other.VerifyJWS(token, "JWT"); !ok {
			t.Errorf("another node refuses %s of the module", use)
		}
		jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(use)})
		check(t, err)
		if _, err := jws.Verify(set); err != nil {
			t.Errorf("a verifier with the JWKS refuses %s of the module: %v", use, err)
		}
	}

	if _, err := keys.Open(t.Context(), plain); err == nil {
		t.Error("Open without the module that holds the current keys: no error")
	}
}

// TestCustodyAway shows that a running ring keeps its keys while the module is unavailable.
func TestCustodyAway(t *testing.T) {
	rows, clock := openStore(t), &hand{}
	m := &module{keys: make(map[string]crypto.Signer)}
	c := clock.node(rows)
	c.Custody = m
	r := open(t, c)
	current := kid(t, rows, keys.ES256, keys.Current)

	m.away = true
	clock.pass(720 * time.Hour)
	if err := r.Tend(t.Context()); err == nil || r.Status().Err == nil {
		t.Error("Tend without the module: no error")
	}
	if _, err := r.Sign(keys.ES256, "JWT", claims{"alice"}); err != nil ||
		kid(t, rows, keys.ES256, keys.Current) != current {
		t.Errorf("Sign with the overdue key: %v, want success", err)
	}

	m.away = false
	if err := r.Tend(t.Context()); err == nil || kid(t, rows, keys.ES256, keys.Current) != current {
		t.Error("a failed step is tried again too early")
	}

	clock.pass(10 * time.Second)
	if err := r.Tend(t.Context()); err != nil || kid(t, rows, keys.ES256, keys.Current) == current {
		t.Errorf("Tend ten seconds after the module's return: %v, want another current key", err)
	}
}

// TestCustodyBlind shows that a node that cannot reach the module still signs valid tokens while
// another node rotates keys.
func TestCustodyBlind(t *testing.T) {
	rows, clock := openStore(t), &hand{}
	m := &module{keys: make(map[string]crypto.Signer)}
	m2 := &module{keys: m.keys}
	c, c2 := clock.node(rows), clock.node(rows)
	c.Custody, c2.Custody = m, m2
	r, blind := open(t, c), open(t, c2)
	m2.away = true
	signs := func(want string) {
		t.Helper()
		token, err := blind.Sign(keys.ES256, "JWT", claims{"alice"})
		check(t, err)
		if _, ok := r.VerifyJWS(token, "JWT"); !ok || !strings.Contains(head(t, token), want) {
			t.Errorf("the blind node signs with %s, want a valid token by %s", head(t, token), want)
		}
	}

	turn := func() string {
		t.Helper()
		rec, err := r.Rotate(t.Context(), keys.ES256, true)
		check(t, errors.Join(err, blind.Sync(t.Context())))
		return rec.Kid
	}

	second := turn()
	signs(second) // this node opened the key when it was the next key
	if err := blind.Status().Err; err == nil || !strings.Contains(err.Error(), kid(t, rows, keys.ES256, keys.Next)) {
		t.Errorf("Status of the blind node: %v, want an error that names the next key", err)
	}
	if _, err := blind.Rotate(t.Context(), keys.ES256, true); err == nil {
		t.Error("Rotate to a key that cannot be opened: no error")
	}

	third := turn()
	signs(second) // the key is retired, but it is the newest key that this node could open
	m2.away = false
	check(t, blind.Tend(t.Context()))
	signs(third)

	m.away = true
	check(t, errors.Join(r.Retire(t.Context(), third), blind.Sync(t.Context())))
	fourth := kid(t, rows, keys.ES256, keys.Current)
	signs(fourth)
	if got := kid(t, rows, keys.ES256, keys.Next); got != "" {
		t.Errorf("without the module, the next key %s was created, want none", got)
	}
	if _, err := blind.Rotate(t.Context(), keys.ES256, true); !errors.Is(err, problem.NotFound) {
		t.Errorf("Rotate without a next key: %v, want not found", err)
	}

	if err := r.Retire(t.Context(), fourth); err == nil || kid(t, rows, keys.ES256, keys.Current) != fourth {
		t.Errorf("Retire without a replacement: %v, want an error", err)
	}

	check(t, blind.Tend(t.Context()))
	if got := kid(t, rows, keys.ES256, keys.Next); got == "" {
		t.Error("Tend has created no next key")
	}
}
