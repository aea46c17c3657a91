package keystest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// oneOfEach has the numbers of keys for a use after its first rotation, by state.
var oneOfEach = map[keys.State]int{keys.Current: 1, keys.Next: 1, keys.Retired: 1}

// TestTend shows how a key goes through the states next, current and retired, and is deleted.
func TestTend(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	node, other := open(t, clock.node(rows)), open(t, clock.node(rows))
	tend := func() {
		t.Helper()
		check(t, node.Tend(t.Context()))
		check(t, other.Tend(t.Context()))
	}
	first := kid(t, rows, keys.ES256, keys.Current)
	next := kid(t, rows, keys.ES256, keys.Next)
	signed, err := node.Sign(keys.ES256, "JWT", claims{"alice"})
	check(t, err)

	clock.pass(720*time.Hour - time.Second)
	check(t, node.Tend(t.Context())) // rotates only the sealing keys
	wantCurrent(t, rows, keys.ES256, "a second before the rotation is due", first)
	sealed, err := node.Sealer("sat", "SAT", "x").Seal(claims{"alice"})
	check(t, err)

	clock.pass(time.Second)
	_, err = node.Rotate(t.Context(), keys.Seal, true)
	check(t, err)
	tend()
	wantCurrent(t, rows, keys.ES256, "after the rotation", next)
	for _, use := range keys.Algorithms() {
		wantStates(t, rows, use, oneOfEach)
	}
	kids := published(t, other)
	if want := 3 * len(keys.Algorithms()); len(kids) != want {
		t.Errorf("the JWKS has %d keys, want %d", len(kids), want)
	}
	for _, want := range []string{first, next} {
		if !slices.Contains(kids, want) {
			t.Errorf("the JWKS has the keys %v, want %s among them", kids, want)
		}
	}
	if since := node.Status().Since[keys.ES256]; !since.Equal(clock.now()) {
		t.Errorf("the key has been signing since %s, want %s", since, clock.now())
	}

	clock.pass(keys.Kept)
	tend()
	var opened claims
	if _, ok := other.VerifyJWS(signed, "JWT"); !ok {
		t.Error("a token signed with a retired key is refused before the key is deleted")
	}
	if !other.Sealer("sat", "SAT", "x").Open(sealed, &opened) {
		t.Error("a token sealed with a retired key is refused before the key is deleted")
	}

	clock.pass(time.Second)
	tend()
	for name, ring := range map[string]*keys.Ring{"this": node, "other": other} {
		if _, ok := ring.VerifyJWS(signed, "JWT"); ok {
			t.Errorf("%s node: a token signed with a deleted key is accepted", name)
		}
		if ring.Sealer("sat", "SAT", "x").Open(sealed, &opened) {
			t.Errorf("%s node: a token sealed with a deleted key is accepted", name)
		}
		if slices.Contains(published(t, ring), first) {
			t.Errorf("%s node: the deleted key is published", name)
		}
	}
}

// TestTendTogether shows that if fifty rings notice at the same time that a rotation is due, only
// one of them rotates the key.
func TestTendTogether(t *testing.T) { eachStore(t, testTendTogether) }

func testTendTogether(t *testing.T, rows *store.Store) {
	clock := &manualClock{}
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
	wantStates(t, rows, keys.Seal, oneOfEach)
	wantCurrent(t, rows, keys.Seal, "after the rotation", next)
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
	rows, clock := openStore(t), &manualClock{}
	r := open(t, clock.node(rows))
	clock.pass(time.Hour - time.Second)
	_, err := r.Rotate(t.Context(), keys.ES256, false)
	if !errors.Is(err, problem.Conflict) {
		t.Fatalf("Rotate before the next key has been published for long enough: got %v, want a conflict", err)
	}
	if !strings.Contains(err.Error(), "was published at") {
		t.Errorf("Rotate before the next key has been published for long enough: got %v, want the reason", err)
	}

	clock.pass(time.Second)
	next := kid(t, rows, keys.ES256, keys.Next)
	rec, err := r.Rotate(t.Context(), keys.ES256, false)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Kid != next {
		t.Errorf("Rotate returns the key %s, want the former next key %s", rec.Kid, next)
	}
	if rec.State != keys.Current {
		t.Errorf("Rotate returns a key that is %s, want %s", rec.State, keys.Current)
	}
	if !rec.Activated.Equal(clock.now()) {
		t.Errorf("Rotate returns a key activated at %s, want %s", rec.Activated, clock.now())
	}

	next = kid(t, rows, keys.ES256, keys.Next)
	rec, err = r.Rotate(t.Context(), keys.ES256, true)
	if err != nil || rec.Kid != next {
		t.Errorf("Rotate immediately again = %s, %v, want %s", rec.Kid, err, next)
	}
	if _, err := r.Rotate(t.Context(), "HS256", true); !errors.Is(err, problem.NotFound) {
		t.Errorf("Rotate of an unknown use: got %v, want NotFound", err)
	}
}

// TestClockApart shows that a node whose clock differs from the store's by more than a quarter of
// the publish time neither rotates nor deletes keys by time.
func TestClockApart(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	openAhead := func(ahead time.Duration) *keys.Ring {
		t.Helper()
		config := clock.node(rows)
		config.Store = timed{rows, func() time.Time { return clock.now().Add(-ahead) }}
		return open(t, config)
	}
	node := open(t, clock.node(rows))
	first := kid(t, rows, keys.ES256, keys.Current)
	clock.pass(721 * time.Hour)

	for _, ahead := range []time.Duration{-16 * time.Minute, 16 * time.Minute, 800 * time.Hour} {
		err := openAhead(ahead).Tend(t.Context())
		if err == nil || !strings.Contains(err.Error(), "apart") {
			t.Errorf("Tend with a clock that is %s ahead: got %v, want an error about this", ahead, err)
		}
		wantCurrent(t, rows, keys.ES256, "after Tend with a wrong clock", first)
	}

	// A quarter of the publish time is close enough.
	check(t, openAhead(-15*time.Minute).Tend(t.Context()))
	check(t, node.Sync(t.Context()))
	second := kid(t, rows, keys.ES256, keys.Current)
	if second == first {
		t.Error("a node whose clock is off by a quarter of the publish time has rotated no key")
	}

	clock.pass(keys.Kept + time.Hour)
	if err := openAhead(time.Hour).Tend(t.Context()); err == nil {
		t.Error("Tend an hour ahead, with a key due for deletion: got nil, want an error")
	}
	if n := states(t, rows, keys.ES256)[keys.Retired]; n != 1 {
		t.Errorf("after Tend an hour ahead, there are %d retired keys, want 1", n)
	}
	if err := node.Retire(t.Context(), second); err != nil {
		t.Errorf("Retire with a wrong clock = %v, want success", err)
	}
}
