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

// nodes returns the Forms of two nodes that share a session store. They read the time from now.
func nodes(t *testing.T, now func() time.Time) (all [2]once.Forms) {
	t.Helper()
	dir := t.TempDir()
	for i := range all {
		live, err := sessions.Open(t.Context(), sessions.Config{Dir: dir})
		must(t, err)
		t.Cleanup(func() { _ = live.Close() })
		all[i] = once.Forms{Sessions: live, Kind: "form", Kept: time.Hour, Now: now}
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFormOnTwoNodes shows that a form that one node is handling, or has handled, is not handled by
// another node. The other node learns whether the first has finished, and with which result. A form
// that failed may be handled again.
func TestFormOnTwoNodes(t *testing.T) {
	all, ctx := nodes(t, time.Now), t.Context()
	one, other := all[0], all[1]
	begins := func(id string) {
		t.Helper()
		_, err := one.Begin(ctx, id)
		must(t, err)
	}
	wants := func(id string, want once.Sent) {
		t.Helper()
		if got, err := other.Begin(ctx, id); got != want || !errors.Is(err, problem.Conflict) {
			t.Errorf("Begin(%s) = %+v, %v, want %+v and a conflict", id, got, err, want)
		}
	}

	for id, result := range map[string]string{"secret": "", "subscriber": "/dashboard/projects/p/subscribers/s"} {
		begins(id)
		wants(id, once.Sent{})
		must(t, one.End(ctx, id, result))
		wants(id, once.Sent{Ended: true, Result: result})
	}

	begins("refused")
	must(t, one.Forget(ctx, "refused"))
	if _, err := other.Begin(ctx, "refused"); err != nil {
		t.Errorf("a form that failed is not handled again: %v", err)
	}
}

// TestLostForm shows that a form whose node stops renewing it is lost after a few minutes, and one
// that is renewed is not.
func TestLostForm(t *testing.T) {
	at := time.Now()
	all, ctx := nodes(t, func() time.Time { return at }), t.Context()
	one, other := all[0], all[1]
	_, err := one.Begin(ctx, "upload")
	must(t, err)
	wants := func(when string, lost bool) {
		t.Helper()
		if got, err := other.Begin(ctx, "upload"); got.Lost != lost || !errors.Is(err, problem.Conflict) {
			t.Errorf("%s, Begin = %+v, %v, want lost %t and a conflict", when, got, err, lost)
		}
	}

	at = at.Add(2 * time.Minute)
	wants("after two minutes", false)
	must(t, one.Renew(ctx, "upload"))
	at = at.Add(2 * time.Minute)
	wants("two minutes after it was renewed", false)
	at = at.Add(2 * time.Minute)
	wants("four minutes after it was renewed", true)
}

// TestFormSentToTwoNodesAtOnce shows that only one of several concurrent requests with the same
// form is handled.
func TestFormSentToTwoNodesAtOnce(t *testing.T) {
	all := nodes(t, time.Now)
	var begun atomic.Int32
	var sending sync.WaitGroup
	for i := range 20 {
		sending.Go(func() {
			_, err := all[i%2].Begin(t.Context(), "form")
			if err == nil {
				begun.Add(1)
			} else if !errors.Is(err, problem.Conflict) {
				t.Errorf("Begin = %v, want Conflict", err)
			}
		})
	}
	sending.Wait()
	if n := begun.Load(); n != 1 {
		t.Errorf("%d requests handle the form, want 1", n)
	}
}
