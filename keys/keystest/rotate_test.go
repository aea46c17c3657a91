package keystest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
	"github.com/selvage/selvage/test/servers"
)

// A hand is a clock that stands still unless a test moves it.
type hand struct{ ahead atomic.Int64 }

func (h *hand) now() time.Time       { return began.Add(time.Duration(h.ahead.Load())) }
func (h *hand) pass(d time.Duration) { h.ahead.Add(int64(d)) }

// node returns the configuration of a node that uses the given store. h is the clock of both.
func (h *hand) node(s keys.Store) keys.Config {
	return keys.Config{Store: timed{s, h.now}, Master: make([]byte, 32), Now: h.now}
}

// timed is a store with its own clock.
type timed struct {
	keys.Store
	now func() time.Time
}

func (s timed) Clock(context.Context) (time.Time, error) { return s.now(), nil }

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func open(t testing.TB, c keys.Config) *keys.Ring {
	t.Helper()
	if c.Custody == nil {
		c.Custody = spared{}
	}
	r, err := keys.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// kid returns the kid of the first key with the given use and state, or "" if there is none.
func kid(t testing.TB, s *store.Store, use keys.Use, state keys.State) string {
	t.Helper()
	for _, rec := range records(t, s) {
		if rec.Use == use && rec.State == state {
			return rec.Kid
		}
	}
	return ""
}

func records(t testing.TB, s *store.Store) []keys.Record {
	t.Helper()
	all, err := s.RingKeys(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// states counts the keys for a use by state.
func states(t testing.TB, s *store.Store, use keys.Use) map[keys.State]int {
	counts := make(map[keys.State]int)
	for _, rec := range records(t, s) {
		if rec.Use == use {
			counts[rec.State]++
		}
	}
	return counts
}

func published(t testing.TB, r *keys.Ring) (kids []string) {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(r.JWKS().Body, &set); err != nil {
		t.Fatal(err)
	}
	for _, k := range set.Keys {
		kids = append(kids, k.KeyID)
	}
	return kids
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eachStore runs a test on each kind of database.
func eachStore(t *testing.T, test func(t *testing.T, rows *store.Store)) {
	t.Run("sqlite", func(t *testing.T) { test(t, openStore(t)) })
	t.Run("postgres", func(t *testing.T) {
		s, err := store.Open(context.Background(),
			store.Config{Audit: storetest.Key(), URL: servers.Postgres(t), Patience: time.Minute})
		check(t, err)
		t.Cleanup(func() { _ = s.Close() })
		test(t, s)
	})
}

// TestTend shows how a key goes through the states next, current and retired, and is deleted.
func TestTend(t *testing.T) {
	rows, clock := openStore(t), &hand{}
	r, other := open(t, clock.node(rows)), open(t, clock.node(rows))
	first, next := kid(t, rows, keys.ES256, keys.Current), kid(t, rows, keys.ES256, keys.Next)
	token, err := r.Sign(keys.ES256, "JWT", claims{"alice"})
	check(t, err)

	clock.pass(720*time.Hour - time.Second)
	check(t, r.Tend(t.Context())) // rotates only the sealing keys
	if got := kid(t, rows, keys.ES256, keys.Current); got != first {
		t.Errorf("the next key became current a second too early")
	}

	sealed, err := r.Sealer("sat", "SAT", "x").Seal(claims{"alice"})
	check(t, err)
	clock.pass(time.Second)
	_, err = r.Rotate(t.Context(), keys.Seal, true)
	check(t, errors.Join(err, r.Tend(t.Context()), other.Tend(t.Context())))
	if got := kid(t, rows, keys.ES256, keys.Current); got != next {
		t.Errorf("the current key is %s, want the next one %s", got, next)
	}

	for _, use := range keys.Algorithms() {
		if got := states(t, rows, use); got[keys.Current] != 1 || got[keys.Next] != 1 || got[keys.Retired] != 1 {
			t.Errorf("%s has %v, want one key of each state", use, got)
		}
	}
	if kids := published(t, other); !slices.Contains(kids, first) || !slices.Contains(kids, next) ||
		len(kids) != 3*len(keys.Algorithms()) {
		t.Errorf("the JWKS has %v, want the next, current and retired key of each algorithm", kids)
	}

	if since := r.Status().Since[keys.ES256]; !since.Equal(clock.now()) {
		t.Errorf("the key has been signing since %s, want %s", since, clock.now())
	}

	clock.pass(keys.Kept)
	check(t, errors.Join(r.Tend(t.Context()), other.Tend(t.Context())))
	var claims claims
	if _, ok := other.VerifyJWS(token, "JWT"); !ok || !other.Sealer("sat", "SAT", "x").Open(sealed, &claims) {
		t.Error("a token of a retired key is refused before the key is deleted")
	}

	clock.pass(time.Second)
	check(t, errors.Join(r.Tend(t.Context()), other.Tend(t.Context())))
	for node, ring := range map[string]*keys.Ring{"this": r, "other": other} {
		if _, ok := ring.VerifyJWS(token, "JWT"); ok ||
			ring.Sealer("sat", "SAT", "x").Open(sealed, &claims) || slices.Contains(published(t, ring), first) {
			t.Errorf("%s node: a deleted key still verifies or opens tokens, or is published", node)
		}
	}
}

// TestTendTogether shows that if fifty rings notice at the same time that a rotation is due, only
// one of them rotates the key.
func TestTendTogether(t *testing.T) { eachStore(t, testTendTogether) }

func testTendTogether(t *testing.T, rows *store.Store) {
	clock := &hand{}
	rings := make([]*keys.Ring, 50)
	for i := range rings {
		rings[i] = open(t, clock.node(rows))
	}

	next := kid(t, rows, keys.Seal, keys.Next)
	clock.pass(24 * time.Hour)
	var wg sync.WaitGroup
	for _, r := range rings {
		wg.Go(func() {
			if err := r.Tend(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	if got := states(t, rows, keys.Seal); got[keys.Current] != 1 || got[keys.Next] != 1 || got[keys.Retired] != 1 {
		t.Errorf("the keys are %v, want one of each state", got)
	}
	if got := kid(t, rows, keys.Seal, keys.Current); got != next {
		t.Errorf("the current key is %s, want %s", got, next)
	}

	token, err := rings[0].Sealer("sat", "SAT", "x").Seal(claims{"alice"})
	check(t, err)
	for i, r := range rings {
		var got claims
		if !r.Sealer("sat", "SAT", "x").Open(token, &got) {
			t.Errorf("node %d does not open what the first node sealed", i)
		}
	}
}

func TestRotate(t *testing.T) {
	rows, clock := openStore(t), &hand{}
	r := open(t, clock.node(rows))
	clock.pass(time.Hour - time.Second)
	if _, err := r.Rotate(t.Context(), keys.ES256, false); !errors.Is(err, problem.Conflict) ||
		!strings.Contains(err.Error(), "was published at") {
		t.Errorf("Rotate before the next key is published for long enough: %v, want a conflict that says so", err)
	}

	clock.pass(time.Second)
	next := kid(t, rows, keys.ES256, keys.Next)
	rec, err := r.Rotate(t.Context(), keys.ES256, false)
	if err != nil || rec.Kid != next || rec.State != keys.Current || !rec.Activated.Equal(clock.now()) {
		t.Errorf("Rotate = %v, %v, want the former next key", rec, err)
	}

	next = kid(t, rows, keys.ES256, keys.Next)
	if rec, err := r.Rotate(t.Context(), keys.ES256, true); err != nil || rec.Kid != next {
		t.Errorf("Rotate immediately again = %v, %v, want the former next key", rec, err)
	}
	if _, err := r.Rotate(t.Context(), "HS256", true); !errors.Is(err, problem.NotFound) {
		t.Errorf("Rotate of an unknown use: %v, want not found", err)
	}
}

// TestClockApart shows that a node whose clock differs from the store's neither rotates nor deletes
// keys by time.
func TestClockApart(t *testing.T) {
	rows, clock := openStore(t), &hand{}
	c := clock.node(rows)
	r := open(t, c)
	current := kid(t, rows, keys.ES256, keys.Current)

	for _, ahead := range []time.Duration{-16 * time.Minute, 16 * time.Minute, 800 * time.Hour} {
		clock.ahead.Store(int64(721 * time.Hour))
		c.Store = timed{rows, func() time.Time { return clock.now().Add(-ahead) }}
		apart := open(t, c)
		if err := apart.Tend(t.Context()); err == nil || !strings.Contains(err.Error(), "apart") {
			t.Errorf("Tend with a clock that is %s ahead: %v, want an error that says so", ahead, err)
		}
		if got := kid(t, rows, keys.ES256, keys.Current); got != current {
			t.Errorf("a node whose clock is %s ahead has rotated a key", ahead)
		}
	}

	c.Store = timed{rows, func() time.Time { return clock.now().Add(15 * time.Minute) }}
	check(t, open(t, c).Tend(t.Context()))
	check(t, r.Sync(t.Context()))
	first := current
	if current = kid(t, rows, keys.ES256, keys.Current); current == first {
		t.Error("a node whose clock is off by a quarter of the publish time has rotated no key")
	}

	clock.pass(keys.Kept + time.Hour)
	c.Store = timed{rows, func() time.Time { return clock.now().Add(-time.Hour) }}
	if err := open(t, c).Tend(t.Context()); err == nil || states(t, rows, keys.ES256)[keys.Retired] != 1 {
		t.Errorf("Tend an hour ahead, with a key due for deletion = %v, want an error and the key to stay", err)
	}
	if err := r.Retire(t.Context(), current); err != nil {
		t.Errorf("Retire with a wrong clock = %v, want success", err)
	}
}

// A retireWorld has two nodes that share a key ring, and the use whose keys are tested.
type retireWorld struct {
	t           *testing.T
	use         keys.Use
	rows        *store.Store
	clock       *hand
	node, other *keys.Ring
	sealers     map[*keys.Ring]*keys.Sealer
}

func newRetireWorld(t *testing.T, use keys.Use) retireWorld {
	t.Helper()
	rows, clock := openStore(t), &hand{}
	r, other := open(t, clock.node(rows)), open(t, clock.node(rows))
	return retireWorld{t, use, rows, clock, r, other,
		map[*keys.Ring]*keys.Sealer{r: r.Sealer("sat", "SAT", "x"), other: other.Sealer("sat", "SAT", "x")}}
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

// wantToken fails unless both nodes accept the token, or both refuse it if want is false.
func (w retireWorld) wantToken(want bool, token, what string) {
	w.t.Helper()
	for name, ring := range map[string]*keys.Ring{"this": w.node, "the other": w.other} {
		var got claims
		good := w.use == keys.Seal && w.sealers[ring].Open(token, &got)
		if w.use != keys.Seal {
			_, good = ring.VerifyJWS(token, "JWT")
		}
		if good != want {
			w.t.Errorf("%s: %s node accepts %s: %v, want %v", w.use, name, what, good, want)
		}
	}
}

// retire revokes a key twice. The second call must have no effect.
func (w retireWorld) retire(kid string) {
	t := w.t
	t.Helper()
	check(t, errors.Join(w.node.Retire(t.Context(), kid), w.node.Retire(t.Context(), kid)))
	check(t, w.other.Sync(t.Context()))
	for _, ring := range []*keys.Ring{w.node, w.other} {
		if slices.Contains(published(t, ring), kid) {
			t.Errorf("%s: the JWKS contains a revoked key", w.use)
		}
	}
	i := slices.IndexFunc(records(t, w.rows), func(rec keys.Record) bool { return rec.Kid == kid })
	if rec := records(t, w.rows)[i]; rec.State != keys.Revoked || rec.Sealed != "" ||
		!rec.Retired.Equal(w.clock.now()) {
		t.Errorf("%s: the row is %v, want a revoked key without a secret", w.use, rec)
	}
}

// TestRetire shows that if a retired or current key is revoked, every node refuses its tokens.
func TestRetire(t *testing.T) {
	for _, use := range []keys.Use{keys.ES256, keys.Seal} {
		w := newRetireWorld(t, use)
		old := w.token()
		oldKid := kid(t, w.rows, use, keys.Current)
		_, err := w.node.Rotate(t.Context(), use, true)
		check(t, errors.Join(err, w.other.Sync(t.Context())))
		young := w.token()
		w.wantToken(true, old, "a token of the retired key")
		w.wantToken(true, young, "a token of the current key")

		w.clock.pass(time.Minute)
		w.retire(oldKid)
		w.wantToken(false, old, "a token of the retired key, which is revoked,")
		w.wantToken(true, young, "a token of the current key, which is not revoked,")

		next := kid(t, w.rows, use, keys.Next)
		w.retire(kid(t, w.rows, use, keys.Current))
		w.wantToken(false, young, "a token of the current key, which is revoked,")
		if got := kid(t, w.rows, use, keys.Current); got != next {
			t.Errorf("%s: the current key is %s, want the next one %s", use, got, next)
		}
		w.wantToken(true, w.token(), "a token of the key that has become the current one")
	}
}

// TestRevokedStays shows that a revoked key is replaced, and that its record is never deleted.
func TestRevokedStays(t *testing.T) {
	for _, use := range []keys.Use{keys.ES256, keys.Seal} {
		w := newRetireWorld(t, use)
		_, err := w.node.Rotate(t.Context(), use, true)
		check(t, err)
		for _, state := range []keys.State{keys.Retired, keys.Current, keys.Next} {
			w.retire(kid(t, w.rows, use, state))
		}

		if got := states(t, w.rows, use); got[keys.Current] != 1 || got[keys.Next] != 1 || got[keys.Revoked] != 3 {
			t.Errorf("%s: the keys are %v, want one current, one next and three revoked", use, got)
		}
		if err := w.node.Retire(t.Context(), "none"); !errors.Is(err, problem.NotFound) {
			t.Errorf("Retire of an unknown key: %v, want not found", err)
		}

		w.clock.pass(2 * keys.Kept)
		check(t, w.node.Tend(t.Context()))
		if got := states(t, w.rows, use); got[keys.Revoked] != 3 {
			t.Errorf("%s: the keys are %v, want the revoked ones to stay in the list", use, got)
		}
	}
}

// TestRetireTogether shows that fifty operators can revoke the same key at the same time.
func TestRetireTogether(t *testing.T) { eachStore(t, testRetireTogether) }

func testRetireTogether(t *testing.T, rows *store.Store) {
	clock := &hand{}
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
	if got := states(t, rows, keys.Seal); got[keys.Current] != 1 || got[keys.Next] != 1 {
		t.Errorf("the keys are %v, want one current and one next", got)
	}
	if got := states(t, rows, keys.Seal); got[keys.Revoked] != 1 || kid(t, rows, keys.Seal, keys.Revoked) != bad {
		t.Errorf("the keys are %v, want only the requested one revoked", got)
	}
}
