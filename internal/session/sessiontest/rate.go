package sessiontest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// rates shows that each key has its own events, so that taking events from one key does not affect
// others. A refusal returns the time until enough events have recovered, and takes none.
func rates(t *testing.T, s session.Store) {
	rate := session.Rate{Burst: 3, Every: time.Hour}
	k, other, unused := key(t, "limit"), key(t, "limit"), key(t, "limit")
	for range rate.Burst {
		wantAllowed(t, s, k, rate, 1)
	}

	wantRefused(t, s, k, rate, 1, time.Hour)
	wantRefused(t, s, k, rate, 2, 2*time.Hour)
	wantRefused(t, s, k, rate, 1, time.Hour) // being refused does not make the wait longer
	wantAllowed(t, s, k, rate, 0)

	wantAllowed(t, s, session.Key{Kind: "other", ID: k.ID}, rate, 3)
	wantAllowed(t, s, other, rate, 2)
	wantRefused(t, s, other, rate, 2, time.Hour)
	wantAllowed(t, s, other, rate, 1)

	wantRefused(t, s, unused, rate, 5, 2*time.Hour)
	wantErr(t, "Delete", s.Delete(t.Context(), k), nil)
}

// rateReturned shows that returned events can be taken again, but never more than the burst.
func rateReturned(t *testing.T, s session.Store) {
	rate := session.Rate{Burst: 2, Every: time.Hour}
	k := key(t, "limit")
	wantAllowed(t, s, k, rate, -1)

	wantAllowed(t, s, k, rate, 2)
	wantRefused(t, s, k, rate, 1, time.Hour)

	wantAllowed(t, s, k, rate, -1)
	wantAllowed(t, s, k, rate, 1)
	wantRefused(t, s, k, rate, 1, time.Hour)

	wantAllowed(t, s, k, rate, -9)
	wantAllowed(t, s, k, rate, 2)
	wantRefused(t, s, k, rate, 1, time.Hour)
}

// rateClockBack takes events from a key whose entry contains a time of recovery that is too late,
// as after the clock was set back or the rate was changed. An event is available, and then the key
// recovers in the usual time.
func rateClockBack(t *testing.T, s session.Store) {
	slow, fast := session.Rate{Burst: 2, Every: time.Hour}, session.Rate{Burst: 2, Every: time.Minute}
	k := key(t, "limit")
	wantAllowed(t, s, k, slow, 2)
	wantAllowed(t, s, k, fast, 1)
	wantRefused(t, s, k, fast, 1, time.Minute)
	wantAllowed(t, s, k, slow, 1) // the entry now says that the key recovers in two minutes
}

// rateExact shows that exactly as many concurrent callers are allowed as the burst permits.
func rateExact(t *testing.T, s session.Store) {
	rate := session.Rate{Burst: callers / 5, Every: time.Hour}
	k := key(t, "limit")
	var allowed atomic.Int64
	together(func(int) {
		wait, err := s.Allow(t.Context(), k, rate, 1)
		if err != nil {
			t.Errorf("Allow = %v, want no error", err)
		}
		if wait == 0 {
			allowed.Add(1)
		}
	})

	if got := allowed.Load(); got != int64(rate.Burst) {
		t.Errorf("%d of %d callers were allowed, want %d", got, callers, rate.Burst)
	}
}

// rateRefills shows that one event can be taken again once the time for recovering one event has
// passed.
func rateRefills(t *testing.T, s session.Store) {
	rate := session.Rate{Burst: 2, Every: short}
	k := key(t, "limit")
	began := time.Now()
	wantAllowed(t, s, k, rate, 2)
	waitGone(t, began, short, func() bool {
		wait, err := s.Allow(t.Context(), k, rate, 1)
		return err == nil && wait == 0
	})
}

func wantAllowed(t *testing.T, s session.Store, k session.Key, rate session.Rate, n int) {
	t.Helper()
	if wait, err := s.Allow(t.Context(), k, rate, n); err != nil || wait != 0 {
		t.Errorf("Allow(%v, %d) = %v, %v, want no wait", rate, n, wait, err)
	}
}

// wantRefused checks that n events are refused, with a wait of at most the given length. The wait
// may be up to 15 minutes shorter, because the rate has been recovering since the first event. A wait
// of 0 would mean that the events are allowed.
func wantRefused(t *testing.T, s session.Store, k session.Key, rate session.Rate, n int, longest time.Duration) {
	t.Helper()
	wait, err := s.Allow(t.Context(), k, rate, n)
	if err != nil {
		t.Errorf("Allow(%v, %d) = %v, want a wait", rate, n, err)
		return
	}
	shortest := max(longest-15*time.Minute, 1)
	if wait < shortest || wait > longest {
		t.Errorf("Allow(%v, %d) = a wait of %v, want from %v to %v", rate, n, wait, shortest, longest)
	}
}
