package once_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
	sessions "github.com/selvage/selvage/internal/session/sql"
)

// nodes returns the Forms of two nodes that share a session store. now is their clock.
func nodes(t *testing.T, now func() time.Time) (forms [2]once.Forms) {
	t.Helper()
	dir := t.TempDir()
	for i := range forms {
		store, err := sessions.Open(t.Context(), sessions.Config{Dir: dir})
		must(t, err)
		t.Cleanup(func() { _ = store.Close() })
		forms[i] = once.Forms{Sessions: store, Kind: "form", Kept: time.Hour, Now: now}
	}
	return forms
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFormOnTwoNodes shows that a node does not handle a form that another node is handling or has
// handled, but learns whether the other node has finished, and with which result. A form that failed may
// be handled again.
func TestFormOnTwoNodes(t *testing.T) {
	forms, ctx := nodes(t, time.Now), t.Context()
	one, other := forms[0], forms[1]
	begin := func(id string) {
		t.Helper()
		_, err := one.Begin(ctx, id)
		must(t, err)
	}
	wantSent := func(id string, want once.Sent) {
		t.Helper()
		if got, err := other.Begin(ctx, id); got != want || !errors.Is(err, problem.Conflict) {
			t.Errorf("Begin(%s) = %+v, %v, want %+v and problem.Conflict", id, got, err, want)
		}
	}

	for id, result := range map[string]string{"secret": "", "subscriber": "/dashboard/projects/p/subscribers/s"} {
		begin(id)
		wantSent(id, once.Sent{})
		must(t, one.End(ctx, id, result))
		wantSent(id, once.Sent{Ended: true, Result: result})
	}

	begin("refused")
	must(t, one.Forget(ctx, "refused"))
	if _, err := other.Begin(ctx, "refused"); err != nil {
		t.Errorf("a form that failed is not handled again: %v", err)
	}
}

// TestLostForm shows that a form is lost a few minutes after its node has stopped renewing it, and not
// before.
func TestLostForm(t *testing.T) {
	now := time.Now()
	forms, ctx := nodes(t, func() time.Time { return now }), t.Context()
	one, other := forms[0], forms[1]
	_, err := one.Begin(ctx, "upload")
	must(t, err)
	wantLost := func(when string, want bool) {
		t.Helper()
		got, err := other.Begin(ctx, "upload")
		if !errors.Is(err, problem.Conflict) {
			t.Errorf("%s, Begin = %v, want problem.Conflict", when, err)
		}
		if got.Lost != want {
			t.Errorf("%s, the form is lost: %t, want %t", when, got.Lost, want)
		}
	}

	now = now.Add(2 * time.Minute)
	wantLost("after two minutes", false)
	must(t, one.Renew(ctx, "upload"))
	now = now.Add(2 * time.Minute)
	wantLost("two minutes after it was renewed", false)
	now = now.Add(2 * time.Minute)
	wantLost("four minutes after it was renewed", true)
}

// TestFormSentToTwoNodesAtOnce shows that only one of several concurrent requests with the same
// form is handled.
func TestFormSentToTwoNodesAtOnce(t *testing.T) {
	forms := nodes(t, time.Now)
	var begun atomic.Int32
	var requests sync.WaitGroup
	for i := range 20 {
		requests.Go(func() {
			_, err := forms[i%2].Begin(t.Context(), "form")
			switch {
			case err == nil:
				begun.Add(1)
			case !errors.Is(err, problem.Conflict):
				t.Errorf("Begin = %v, want success or problem.Conflict", err)
			}
		})
	}
	requests.Wait()
	if n := begun.Load(); n != 1 {
		t.Errorf("%d requests handle the form, want 1", n)
	}
}
