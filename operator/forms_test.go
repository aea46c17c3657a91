package operator_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store/storetest"
)

// nodes returns the Operators of two nodes that share a session store.
func nodes(t *testing.T) (all [2]*operator.Operators) {
	t.Helper()
	rows, dir := storetest.Rows(t), t.TempDir()
	for i := range all {
		live, err := sessions.Open(t.Context(), sessions.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = live.Close() })
		all[i] = operator.New(operator.Config{Store: rows, Sessions: live})
	}
	return all
}

// TestFormOnTwoNodes shows that a form that one node handles, or has handled, is not handled by
// another, which learns whether the first has finished and with which result. A form that failed may
// be handled again.
func TestFormOnTwoNodes(t *testing.T) {
	all, ctx := nodes(t), t.Context()
	one, other := all[0], all[1]
	begins := func(id string) {
		t.Helper()
		if _, err := one.BeginForm(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(id, result string, ended bool) {
		t.Helper()
		got, err := other.BeginForm(ctx, id)
		if got.Result != result || got.Ended != ended || !errors.Is(err, problem.Conflict) {
			t.Errorf("BeginForm(%s) = %+v, %v, want %q, %t and a conflict", id, got, err, result, ended)
		}
		if began := time.Since(got.Began) < time.Hour; began == ended {
			t.Errorf("BeginForm(%s) says that the form was begun at %s", id, got.Began)
		}
	}

	for id, result := range map[string]string{"secret": "", "subscriber": "/dashboard/projects/p/subscribers/s"} {
		begins(id)
		wants(id, "", false)
		if err := one.EndForm(ctx, id, result); err != nil {
			t.Fatal(err)
		}
		wants(id, result, true)
	}

	begins("refused")
	if err := one.ForgetForm(ctx, "refused"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.BeginForm(ctx, "refused"); err != nil {
		t.Errorf("a form that failed is not handled again: %v", err)
	}
}

// TestFormSentToTwoNodesAtOnce shows that only one of several concurrent requests with the same
// form is handled.
func TestFormSentToTwoNodesAtOnce(t *testing.T) {
	all := nodes(t)
	var begun atomic.Int32
	var sending sync.WaitGroup
	for i := range 20 {
		sending.Go(func() {
			_, err := all[i%2].BeginForm(t.Context(), "form")
			if err == nil {
				begun.Add(1)
			} else if !errors.Is(err, problem.Conflict) {
				t.Errorf("BeginForm = %v, want Conflict", err)
			}
		})
	}
	sending.Wait()
	if n := begun.Load(); n != 1 {
		t.Errorf("%d requests handle the form, want 1", n)
	}
}
