package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/sql"
)

// open returns a store whose clock stands still, so that no limit recovers during a slow test.
func open(t *testing.T) *sql.Store {
	t.Helper()
	now := time.Now()
	s, err := sql.Open(t.Context(), sql.Config{Dir: t.TempDir(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func wantLimited(t *testing.T, event string, err error) {
	t.Helper()
	p := problem.First(err)
	if p == nil || p.Kind != problem.RateLimited {
		t.Errorf("%s = %v, want problem.RateLimited", event, err)
		return
	}
	if p.RetryAfter <= 0 {
		t.Errorf("%s: the wait is %v, want more than 0", event, p.RetryAfter)
	}
}

func wantFree(t *testing.T, event string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s = %v, want no error", event, err)
	}
}

func TestTake(t *testing.T) {
	ctx := t.Context()
	l := New(open(t), Rates{LoginPerAccount: Of(3, time.Hour), APIWrites: {}})
	for range 3 {
		wantFree(t, "Take", l.Take(ctx, LoginPerAccount, "ada"))
	}
	wantLimited(t, "Take over the limit", l.Take(ctx, LoginPerAccount, "ada"))
	wantFree(t, "Take of another caller", l.Take(ctx, LoginPerAccount, "{grace}"))

	l.Return(ctx, LoginPerAccount, "ada")
	wantFree(t, "Take after Return", l.Take(ctx, LoginPerAccount, "ada"))
	wantLimited(t, "Take over the limit again", l.Take(ctx, LoginPerAccount, "ada"))

	wantFree(t, "Reset", l.Reset(ctx, LoginPerAccount, "ada"))
	wantFree(t, "Take after Reset", l.Take(ctx, LoginPerAccount, "ada"))

	for range 100 {
		wantFree(t, "Take of a limit that is off", l.Take(ctx, APIWrites, "ada"))
		wantFree(t, "Take of a limit that is absent", l.Take(ctx, APIRequests, "ada"))
		wantFree(t, "Take without limits", (*Limiter)(nil).Take(ctx, LoginPerAccount, "ada"))
	}

	l.Set(Rates{APIRequests: Of(1, time.Hour)})
	wantFree(t, "Take of a limit that was turned on", l.Take(ctx, APIRequests, "ada"))
	wantLimited(t, "Take over the limit", l.Take(ctx, APIRequests, "ada"))
	wantFree(t, "Take of a limit that was turned off", l.Take(ctx, LoginPerAccount, "ada"))
}

// TestTakeOnce shows that with concurrent callers on two nodes, exactly as many succeed as the
// limit allows.
func TestTakeOnce(t *testing.T) {
	store, rates := open(t), Rates{LoginPerAccount: Of(10, time.Hour)}
	nodes := []*Limiter{New(store, rates), New(store, rates)}

	var succeeded atomic.Int64
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			if nodes[i%2].Take(t.Context(), LoginPerAccount, "ada") == nil {
				succeeded.Add(1)
			}
		})
	}
	callers.Wait()

	if n := succeeded.Load(); n != 10 {
		t.Errorf("%d of 64 callers succeeded, want 10", n)
	}
}

// TestPass shows that exactly as many calls of Pass succeed as the rate allows, and that most calls do
// not access the store. It also shows that Unpass undoes Pass, and that the number of cached shares is
// bounded.
func TestPass(t *testing.T) {
	ctx := t.Context()
	c := &counting{Store: open(t)}
	l := New(c, Rates{APIRequests: Of(1000, time.Hour), MediaMissesPerNetwork: Of(5, time.Hour)})
	for i := range 1000 {
		wantFree(t, fmt.Sprint("Pass ", i), l.Pass(ctx, APIRequests, "key"))
	}
	for range 100 {
		wantLimited(t, "Pass over the limit", l.Pass(ctx, APIRequests, "key"))
	}
	if got := c.n.Load(); got > 110 {
		t.Errorf("the store was called %d times, want at most 110 for 1,100 events", got)
	}

	for range 100 {
		wantFree(t, "Pass", l.Pass(ctx, MediaMissesPerNetwork, "here"))
		l.Unpass(MediaMissesPerNetwork, "here")
	}
	for range 5 {
		wantFree(t, "Pass", l.Pass(ctx, MediaMissesPerNetwork, "here"))
	}
	wantLimited(t, "Pass over the limit", l.Pass(ctx, MediaMissesPerNetwork, "here"))

	for i := range 3 * maxShares {
		l.keep(l.caller(APIRequests, fmt.Sprint(i)), 1, 0)
	}
	if len(l.shares) > maxShares {
		t.Errorf("%d shares are cached, want at most %d", len(l.shares), maxShares)
	}
}

// counting is a store that counts calls of Allow.
type counting struct {
	session.Store
	n atomic.Int64
}

func (c *counting) Allow(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	c.n.Add(1)
	return c.Store.Allow(ctx, key, rate, n)
}

// away is a store that is unavailable.
type away struct{ session.Store }

func (away) Allow(ctx context.Context, _ session.Key, _ session.Rate, _ int) (time.Duration, error) {
	return 0, errors.Join(ctx.Err(), errors.New("away"))
}

// TestStoreUnavailable shows that each node enforces limits on its own while the store is unavailable.
func TestStoreUnavailable(t *testing.T) {
	l := New(away{open(t)}, Rates{LoginPerAccount: Of(2, time.Hour)})
	wantFree(t, "Take", l.Take(t.Context(), LoginPerAccount, "ada"))
	wantFree(t, "Take", l.Take(t.Context(), LoginPerAccount, "ada"))
	wantLimited(t, "Take over the limit", l.Take(t.Context(), LoginPerAccount, "ada"))

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Take(canceled, LoginPerAccount, "grace"); !errors.Is(err, context.Canceled) {
		t.Errorf("Take with a canceled context = %v, want context.Canceled", err)
	}
}

// TestTakeOf shows that TakeOf applies the rate that its caller chooses.
func TestTakeOf(t *testing.T) {
	ctx := t.Context()
	l := New(open(t), Rates{})
	for who, burst := range map[string]int{"low": 1, "high": 3} {
		rate := Of(burst, time.Hour)
		for range burst {
			wantFree(t, "TakeOf", l.TakeOf(ctx, Uploads, who, rate))
		}
		wantLimited(t, "TakeOf over the rate", l.TakeOf(ctx, Uploads, who, rate))
	}
	wantFree(t, "TakeOf without a rate", l.TakeOf(ctx, Uploads, "low", Of(0, time.Hour)))
	var none *Limiter
	wantFree(t, "TakeOf of a nil Limiter", none.TakeOf(ctx, Uploads, "low", Of(1, time.Hour)))
}
