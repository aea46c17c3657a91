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
	mu     sync.Mutex
	keys   map[string]crypto.Signer
	isDown bool
}

var _ keys.Custody = (*module)(nil)

func (m *module) Make(_ context.Context, use keys.Use) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isDown {
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

	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("module/%d", len(m.keys))
	m.keys[name] = key
	return []byte(name), nil
}

func (m *module) Open(ctx context.Context, use keys.Use, handle []byte) (crypto.Signer, error) {
	if !strings.HasPrefix(string(handle), "module/") {
		return keys.PKCS8{}.Open(ctx, use, handle) // a key from before the module was used
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.keys[string(handle)]
	if m.isDown || key == nil {
		return nil, fmt.Errorf("the module has no key %s", handle)
	}
	return moduleKey{module: m, name: string(handle), public: key.Public()}, nil
}

// A moduleKey is the signer for a key in a module.
type moduleKey struct {
	module *module
	name   string
	public crypto.PublicKey
}

func (k moduleKey) Public() crypto.PublicKey { return k.public }

func (k moduleKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.module.mu.Lock()
	defer k.module.mu.Unlock()
	return k.module.keys[k.name].Sign(random, digest, opts)
}

// TestCustody shows that a ring whose keys are in memory can be moved to a module.
func TestCustody(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	plain := clock.node(rows)
	token, err := open(t, plain).Sign(keys.RS256, "JWT", claims{"alice"})
	check(t, err)

	moved := plain
	m := &module{keys: make(map[string]crypto.Signer)}
	moved.Custody = m
	r, other := open(t, moved), open(t, moved)
	for range 2 { // the next keys were created before the module was used
		for _, use := range keys.Algorithms() {
			_, err := r.Rotate(t.Context(), use, true)
			check(t, err)
		}
	}

	check(t, other.Sync(t.Context()))
	if got, want := len(m.keys), 2*len(keys.Algorithms()); got != want { // current and next keys
		t.Errorf("the module has %d keys, want %d", got, want)
	}
	if _, ok := other.VerifyJWS(token, "JWT"); !ok {
		t.Error("a token that was signed before the module was used is refused")
	}

	var set jose.JSONWebKeySet
	check(t, json.Unmarshal(other.JWKS().Body, &set))
	for _, use := range keys.Algorithms() {
		token, err := r.Sign(use, "JWT", claims{"alice"})
		check(t, err)
		if _, ok := other.VerifyJWS(token, "JWT"); !ok {
			t.Errorf("another node refuses the module's %s signature", use)
		}
		jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(use)})
		check(t, err)
		if _, err := jws.Verify(set); err != nil {
			t.Errorf("a verifier with the JWKS refuses the module's %s signature: %v", use, err)
		}
	}

	if _, err := keys.Open(t.Context(), plain); err == nil {
		t.Error("Open without the module that holds the current keys: no error")
	}
}

// TestCustodyAway shows that a running ring keeps its keys while the module is unavailable.
func TestCustodyAway(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	m := &module{keys: make(map[string]crypto.Signer)}
	c := clock.node(rows)
	c.Custody = m
	r := open(t, c)
	current := kid(t, rows, keys.ES256, keys.Current)

	m.isDown = true
	clock.pass(720 * time.Hour)
	if err := r.Tend(t.Context()); err == nil {
		t.Error("Tend without the module: got nil, want an error")
	}
	if r.Status().Err == nil {
		t.Error("Status without the module reports no error")
	}
	if _, err := r.Sign(keys.ES256, "JWT", claims{"alice"}); err != nil {
		t.Errorf("Sign with the overdue key: %v, want success", err)
	}
	wantCurrent(t, rows, keys.ES256, "without the module", current)

	// A step that failed is not tried again at once.
	m.isDown = false
	if err := r.Tend(t.Context()); err == nil {
		t.Error("Tend right after the module's return: got nil, want an error")
	}
	wantCurrent(t, rows, keys.ES256, "right after the module's return", current)

	clock.pass(10 * time.Second)
	check(t, r.Tend(t.Context()))
	if kid(t, rows, keys.ES256, keys.Current) == current {
		t.Error("ten seconds after the module's return, the current key is still the same, want the next key")
	}
}

// TestCustodyBlind shows that a node that cannot reach the module still signs valid tokens while
// another node rotates keys.
func TestCustodyBlind(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	near := &module{keys: make(map[string]crypto.Signer)}
	far := &module{keys: near.keys} // the same module, as the blind node reaches it
	nearConfig, farConfig := clock.node(rows), clock.node(rows)
	nearConfig.Custody, farConfig.Custody = near, far
	node, blind := open(t, nearConfig), open(t, farConfig)
	wantSignedBy := func(want string) {
		t.Helper()
		token, err := blind.Sign(keys.ES256, "JWT", claims{"alice"})
		check(t, err)
		if _, ok := node.VerifyJWS(token, "JWT"); !ok {
			t.Error("the other node refuses a token of the blind node")
		}
		if header := head(t, token); !strings.Contains(header, want) {
			t.Errorf("the blind node signs with %s, want the key %s", header, want)
		}
	}
	rotate := func() string {
		t.Helper()
		rec, err := node.Rotate(t.Context(), keys.ES256, true)
		check(t, err)
		check(t, blind.Sync(t.Context()))
		return rec.Kid
	}

	far.isDown = true
	second := rotate()
	wantSignedBy(second) // the blind node opened it when it was the next key
	next := kid(t, rows, keys.ES256, keys.Next)
	if err := blind.Status().Err; err == nil || !strings.Contains(err.Error(), next) {
		t.Errorf("Status of the blind node: %v, want an error that names the next key %s", err, next)
	}
	if _, err := blind.Rotate(t.Context(), keys.ES256, true); err == nil {
		t.Error("Rotate to a key that cannot be opened: got nil, want an error")
	}

	third := rotate()
	wantSignedBy(second) // the key is retired, but it is the newest that the blind node could open
	far.isDown = false
	check(t, blind.Tend(t.Context()))
	wantSignedBy(third)

	near.isDown = true
	check(t, node.Retire(t.Context(), third))
	check(t, blind.Sync(t.Context()))
	fourth := kid(t, rows, keys.ES256, keys.Current)
	wantSignedBy(fourth)
	if got := kid(t, rows, keys.ES256, keys.Next); got != "" {
		t.Errorf("without the module, the next key %s was created, want none", got)
	}
	if _, err := blind.Rotate(t.Context(), keys.ES256, true); !errors.Is(err, problem.NotFound) {
		t.Errorf("Rotate without a next key: got %v, want NotFound", err)
	}
	if err := node.Retire(t.Context(), fourth); err == nil {
		t.Error("Retire without a replacement: got nil, want an error")
	}
	wantCurrent(t, rows, keys.ES256, "after Retire without a replacement", fourth)

	check(t, blind.Tend(t.Context()))
	if got := kid(t, rows, keys.ES256, keys.Next); got == "" {
		t.Error("Tend has created no next key")
	}
}
