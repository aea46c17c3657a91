package sessiontest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// callers is the number of concurrent goroutines.
const callers = 50

// together calls do in all goroutines at the same time.
func together(do func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})

	for i := range callers {
		wg.Go(func() {
			<-start
			do(i)
		})
	}

	close(start)
	wg.Wait()
}

// oneWins calls try in all goroutines. It fails unless one call succeeds and all others return the
// error loses.
func oneWins(t *testing.T, loses error, try func(i int) error) {
	t.Helper()
	var won atomic.Int64
	together(func(i int) {
		err := try(i)
		switch {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, loses):
			t.Errorf("caller %d got %v, want %v", i, err, loses)
		}
	})

	if n := won.Load(); n != 1 {
		t.Errorf("%d of %d callers won, want 1", n, callers)
	}
}

func oneTakes(t *testing.T, s session.Store) {
	k := key(t, "code")
	mustPut(t, s, k, "one", time.Minute)
	oneWins(t, problem.NotFound, func(int) error {
		got, err := s.Take(t.Context(), k)
		if err == nil && string(got) != "one" {
			t.Errorf("Take = %q, want one", got)
		}
		return err
	})
}

func oneAdds(t *testing.T, s session.Store) {
	k := key(t, "jti")
	oneWins(t, problem.Conflict, func(i int) error {
		return s.Add(t.Context(), k, fmt.Append(nil, i), time.Minute)
	})
}

func oneSwaps(t *testing.T, s session.Store) {
	k := key(t, "login")
	mustPut(t, s, k, "old", time.Minute)
	oneWins(t, problem.Conflict, func(i int) error {
		return s.CompareAndSwap(t.Context(), k, []byte("old"), fmt.Append(nil, i), time.Minute)
	})
}

func allCount(t *testing.T, s session.Store) {
	k := key(t, "tries")
	var seen sync.Map
	together(func(i int) {
		n, err := s.Incr(t.Context(), k, time.Minute)
		if err != nil {
			t.Errorf("Incr = %v, want success", err)
			return
		}
		if other, twice := seen.LoadOrStore(n, i); twice {
			t.Errorf("Incr = %d for caller %d, want a number that caller %v does not have", n, i, other)
		}
	})
	wantCount(t, s, k, callers+1, time.Minute)
}

// allSwap shows that no count is lost if concurrent callers increment a value with CompareAndSwap.
func allSwap(t *testing.T, s session.Store) {
	k := key(t, "login")
	mustPut(t, s, k, "0", time.Minute)
	together(func(int) {
		for {
			old, err := s.Get(t.Context(), k)
			if err != nil {
				t.Errorf("Get = %v, want success", err)
				return
			}
			n, err := strconv.Atoi(string(old))
			if err != nil {
				t.Errorf("Get = %q, want a number", old)
				return
			}

			err = s.CompareAndSwap(t.Context(), k, old, fmt.Append(nil, n+1), time.Minute)
			if errors.Is(err, problem.Conflict) {
				continue
			}
			if err != nil {
				t.Errorf("CompareAndSwap = %v, want success or a conflict", err)
			}
			return
		}
	})
	wantValue(t, s, k, strconv.Itoa(callers))
}

// noneMixedUp shows that concurrent callers with their own entries always read the values that they
// wrote. The entries have many sizes, and contain their key.
func noneMixedUp(t *testing.T, s session.Store) {
	together(func(i int) {
		for round := range 10 {
			k := key(t, "code")
			want := strings.Repeat(k.ID, 1+i*round)
			if err := s.Put(t.Context(), k, []byte(want), time.Minute); err != nil {
				t.Errorf("Put = %v, want nil", err)
			}
			wantValue(t, s, k, want)
			wantTaken(t, s, k, want)
		}
	})
}
