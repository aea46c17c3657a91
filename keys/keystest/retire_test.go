package keystest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// A retireWorld has two nodes that share a key ring, and the use whose keys are tested.
type retireWorld struct {
	t           *testing.T
	use         keys.Use
	rows        *store.Store
	clock       *manualClock
	node, other *keys.Ring
	sealers     map[*keys.Ring]*keys.Sealer
}

func newRetireWorld(t *testing.T, use keys.Use) retireWorld {
	t.Helper()
	rows, clock := openStore(t), &manualClock{}
	node, other := open(t, clock.node(rows)), open(t, clock.node(rows))
	return retireWorld{
		t:     t,
		use:   use,
		rows:  rows,
		clock: clock,
		node:  node,
		other: other,
		sealers: map[*keys.Ring]*keys.Sealer{
			node:  node.Sealer("sat", "SAT", "x"),
			other: other.Sealer("sat", "SAT", "x"),
		},
	}
}

// token returns a token that w.node has signed or sealed.
func (w retireWorld) token() string {
	w.t.Helper()
	if w.use == keys.Seal {
		token, err := w.sealers[w.node].Seal(claims{"alice"})
		check(w.t, err)
		return token
	}
	token, err := w.node.Sign(w.use, "JWT", claims{"alice"})
	check(w.t, err)
	return token
}

// accepts reports whether a ring opens a sealed token or verifies a signed one.
func (w retireWorld) accepts(ring *keys.Ring, token string) bool {
	if w.use == keys.Seal {
		var opened claims
		return w.sealers[ring].Open(token, &opened)
	}
	_, ok := ring.VerifyJWS(token, "JWT")
	return ok
}

// wantToken fails the test unless both nodes accept the token or, if want is false, both refuse it.
func (w retireWorld) wantToken(want bool, token, what string) {
	w.t.Helper()
	for name, ring := range map[string]*keys.Ring{"this": w.node, "the other": w.other} {
		if got := w.accepts(ring, token); got != want {
			w.t.Errorf("%s: %s node accepts %s: %v, want %v", w.use, name, what, got, want)
		}
	}
}

// retire revokes a key twice. The second call must have no effect.
func (w retireWorld) retire(keyID string) {
	t := w.t
	t.Helper()
	for range 2 {
		check(t, w.node.Retire(t.Context(), keyID))
	}
	check(t, w.other.Sync(t.Context()))
	for _, ring := range []*keys.Ring{w.node, w.other} {
		if slices.Contains(published(t, ring), keyID) {
			t.Errorf("%s: the JWKS contains a revoked key", w.use)
		}
	}

	stored := records(t, w.rows)
	i := slices.IndexFunc(stored, func(rec keys.Record) bool { return rec.Kid == keyID })
	if i < 0 {
		t.Fatalf("%s: the revoked key %s is deleted, want it in the list", w.use, keyID)
	}
	rec := stored[i]
	if rec.State != keys.Revoked {
		t.Errorf("%s: the revoked key is %s, want %s", w.use, rec.State, keys.Revoked)
	}
	if rec.Sealed != "" {
		t.Errorf("%s: the revoked key has the secret %q, want none", w.use, rec.Sealed)
	}
	if !rec.Retired.Equal(w.clock.now()) {
		t.Errorf("%s: the key is revoked at %s, want %s", w.use, rec.Retired, w.clock.now())
	}
}

// TestRetire shows that if a retired or current key is revoked, every node refuses its tokens.
func TestRetire(t *testing.T) {
	for _, use := range []keys.Use{keys.ES256, keys.Seal} {
		t.Run(string(use), func(t *testing.T) { testRetire(t, use) })
	}
}

func testRetire(t *testing.T, use keys.Use) {
	w := newRetireWorld(t, use)
	old := w.token()
	oldKid := kid(t, w.rows, use, keys.Current)
	_, err := w.node.Rotate(t.Context(), use, true)
	check(t, err)
	check(t, w.other.Sync(t.Context()))
	young := w.token()
	w.wantToken(true, old, "a token of the retired key")
	w.wantToken(true, young, "a token of the current key")

	w.clock.pass(time.Minute)
	w.retire(oldKid)
	w.wantToken(false, old, "a token of the retired key after its revocation")
	w.wantToken(true, young, "a token of the current key after the revocation of the retired key")

	next := kid(t, w.rows, use, keys.Next)
	w.retire(kid(t, w.rows, use, keys.Current))
	w.wantToken(false, young, "a token of the current key after its revocation")
	wantCurrent(t, w.rows, use, "after the current key was revoked", next)
	w.wantToken(true, w.token(), "a token of the key that has become the current one")
}

// TestRevokedStays shows that a revoked key is replaced, and that its record is not deleted with
// those of retired keys.
func TestRevokedStays(t *testing.T) {
	for _, use := range []keys.Use{keys.ES256, keys.Seal} {
		t.Run(string(use), func(t *testing.T) { testRevokedStays(t, use) })
	}
}

func testRevokedStays(t *testing.T, use keys.Use) {
	w := newRetireWorld(t, use)
	_, err := w.node.Rotate(t.Context(), use, true)
	check(t, err)
	for _, state := range []keys.State{keys.Retired, keys.Current, keys.Next} {
		w.retire(kid(t, w.rows, use, state))
	}
	wantStates(t, w.rows, use, map[keys.State]int{keys.Current: 1, keys.Next: 1, keys.Revoked: 3})
	if err := w.node.Retire(t.Context(), "none"); !errors.Is(err, problem.NotFound) {
		t.Errorf("Retire of an unknown key: got %v, want NotFound", err)
	}

	w.clock.pass(2 * keys.Kept)
	check(t, w.node.Tend(t.Context()))
	if n := states(t, w.rows, use)[keys.Revoked]; n != 3 {
		t.Errorf("after Tend, there are %d revoked keys, want 3", n)
	}
}

// TestRetireTogether shows that fifty operators can revoke the same key at the same time.
func TestRetireTogether(t *testing.T) { eachStore(t, testRetireTogether) }

func testRetireTogether(t *testing.T, rows *store.Store) {
	clock := &manualClock{}
	rings := make([]*keys.Ring, 50)
	for i := range rings {
		rings[i] = open(t, clock.node(rows))
	}

	bad := kid(t, rows, keys.Seal, keys.Current)
	var wg sync.WaitGroup
	for _, r := range rings {
		wg.Go(func() {
			if err := r.Retire(context.Background(), bad); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	wantStates(t, rows, keys.Seal, map[keys.State]int{keys.Current: 1, keys.Next: 1, keys.Revoked: 1})
	if got := kid(t, rows, keys.Seal, keys.Revoked); got != bad {
		t.Errorf("the revoked key is %s, want %s", got, bad)
	}
}
