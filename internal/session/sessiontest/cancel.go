package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// cancelled shows that a call whose context was canceled changes nothing.
func cancelled(t *testing.T, s session.Store) {
	here, k, tries := t.Context(), key(t, "code"), key(t, "tries")
	left, leave := context.WithCancel(here)
	leave()
	gone := func(doing string, err error) {
		t.Helper()
		wantErr(t, doing+" with a canceled context", err, context.Canceled)
	}

	gone("Put", s.Put(left, k, []byte("one"), time.Minute))
	wantNone(t, s, k)
	gone("Add", s.Add(left, k, []byte("one"), time.Minute))
	wantNone(t, s, k)

	mustPut(t, s, k, "one", time.Minute)
	_, err := s.Get(left, k)
	gone("Get", err)
	_, err = s.Take(left, k)
	gone("Take", err)
	gone("CompareAndSwap", s.CompareAndSwap(left, k, []byte("one"), []byte("two"), time.Minute))
	gone("Delete", s.Delete(left, k))
	wantValue(t, s, k, "one")

	_, err = s.Incr(left, tries, time.Minute)
	gone("Incr", err)
	wantCount(t, s, tries, 1, time.Minute)

	limited, rate := key(t, "limit"), session.Rate{Burst: 1, Every: time.Hour}
	_, err = s.Allow(left, limited, rate, 1)
	gone("Allow", err)
	wantAllowed(t, s, limited, rate, 1)
}

// leaving cancels the contexts of some callers at random moments. It shows that no caller gets the
// response for another, and that no entry is taken twice.
func leaving(t *testing.T, s session.Store) {
	together(func(i int) {
		for round := range 20 {
			k, want := key(t, "code"), fmt.Sprintf("%d in round %d", i, round)
			ctx, leave := context.WithTimeout(t.Context(), time.Duration(i*round)*time.Microsecond)
			_ = s.Put(ctx, k, []byte(want), time.Minute) // the context may be done already

			got, taken := s.Take(ctx, k)
			leave()
			if taken == nil && string(got) != want {
				t.Errorf("Take = %q, want %q", got, want)
			}

			again, err := s.Take(t.Context(), k)
			if err == nil && (taken == nil || string(again) != want) {
				t.Errorf("the second Take = %q after the first = %q, want the entry unchanged and only once",
					again, got)
			} else if err != nil && !errors.Is(err, problem.NotFound) {
				t.Errorf("the second Take = %v, want success or not found", err)
			}
		}
	})
}
