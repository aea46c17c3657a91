package keystest

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
	"github.com/selvage/selvage/test/servers"
)

// A manualClock is a clock that stands still unless a test moves it.
type manualClock struct{ ahead atomic.Int64 }

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (h *manualClock) now() time.Time       { return began.Add(time.Duration(h.ahead.Load())) }
func (h *manualClock) pass(d time.Duration) { h.ahead.Add(int64(d)) }

// node returns the configuration of a node that uses the given store. h is the clock of both.
func (h *manualClock) node(s keys.Store) keys.Config {
	return keys.Config{Store: timed{s, h.now}, Master: make([]byte, 32), Now: h.now}
}

// timed is a store with its own clock.
type timed struct {
	keys.Store
	now func() time.Time
}

func (s timed) Clock(context.Context) (time.Time, error) { return s.now(), nil }

// open opens a ring. Unless the configuration says otherwise, the ring reuses RSA keys.
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

// records returns all keys of a ring, as they are stored.
func records(t testing.TB, s *store.Store) []keys.Record {
	t.Helper()
	stored, err := s.RingKeys(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// states counts the keys for a use by state.
func states(t testing.TB, s *store.Store, use keys.Use) map[keys.State]int {
	t.Helper()
	counts := make(map[keys.State]int)
	for _, rec := range records(t, s) {
		if rec.Use == use {
			counts[rec.State]++
		}
	}
	return counts
}

// wantStates fails the test unless there are this many keys of each state for a use.
func wantStates(t testing.TB, s *store.Store, use keys.Use, want map[keys.State]int) {
	t.Helper()
	if diff := cmp.Diff(want, states(t, s, use)); diff != "" {
		t.Errorf("the keys for %s by state (-want +got):\n%s", use, diff)
	}
}

// wantCurrent fails the test unless the current key for a use has the given kid.
func wantCurrent(t testing.TB, s *store.Store, use keys.Use, when, want string) {
	t.Helper()
	if got := kid(t, s, use, keys.Current); got != want {
		t.Errorf("%s, the current key for %s is %s, want %s", when, use, got, want)
	}
}

// published returns the kids in the JWKS of a node.
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

// check stops the test if err is not nil.
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
		config := store.Config{Audit: storetest.Key(), URL: servers.Postgres(t), Patience: time.Minute}
		rows, err := store.Open(context.Background(), config)
		check(t, err)
		t.Cleanup(func() { _ = rows.Close() })
		test(t, rows)
	})
}
