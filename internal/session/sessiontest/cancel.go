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
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	wantCanceled := func(operation string, err error) {
		t.Helper()
		wantErr(t, operation+" with a canceled context", err, context.Canceled)
	}

	code := key(t, "code")
	wantCanceled("Put", s.Put(canceled, code, []byte("one"), time.Minute))
	wantNone(t, s, code)
	wantCanceled("Add", s.Add(canceled, code, []byte("one"), time.Minute))
	wantNone(t, s, code)

	mustPut(t, s, code, "one", time.Minute)
	_, err := s.Get(canceled, code)
	wantCanceled("Get", err)
	_, err = s.Take(canceled, code)
	wantCanceled("Take", err)
	err = s.CompareAndSwap(canceled, code, []byte("one"), []byte("two"), time.Minute)
	wantCanceled("CompareAndSwap", err)
	wantCanceled("Delete", s.Delete(canceled, code))
	wantValue(t, s, code, "one")

	tries := key(t, "tries")
	_, err = s.Incr(canceled, tries, time.Minute)
	wantCanceled("Incr", err)
	wantCount(t, s, tries, 1, time.Minute)

	limited, rate := key(t, "limit"), session.Rate{Burst: 1, Every: time.Hour}
	_, err = s.Allow(canceled, limited, rate, 1)
	wantCanceled("Allow", err)
	wantAllowed(t, s, limited, rate, 1)
}

// leaving cancels the contexts of callers at various moments. It shows that no caller gets the
// response to another caller, and that no entry is taken twice.
func leaving(t *testing.T, s session.Store) {
	together(func(i int) {
		for round := range 20 {
			value := fmt.Sprintf("%d in round %d", i, round)
			leave(t, s, value, time.Duration(i*round)*time.Microsecond)
		}
	})
}

// leave puts and takes an entry with a context that ends after the given time, and then takes the
// entry again.
func leave(t *testing.T, s session.Store, value string, after time.Duration) {
	k := key(t, "code")
	ctx, cancel := context.WithTimeout(t.Context(), after)
	_ = s.Put(ctx, k, []byte(value), time.Minute) // the context may be done already
	first, firstErr := s.Take(ctx, k)
	cancel()
	if firstErr == nil && string(first) != value {
		t.Errorf("the first Take = %q, want %q", first, value)
	}

	second, err := s.Take(t.Context(), k)
	if errors.Is(err, problem.NotFound) {
		return
	}
	if err != nil {
		t.Errorf("the second Take = %v, want success or not found", err)
		return
	}
	if firstErr == nil {
		t.Errorf("the second Take = %q after a first that succeeded, want not found", second)
	}
	if string(second) != value {
		t.Errorf("the second Take = %q, want %q", second, value)
	}
}
