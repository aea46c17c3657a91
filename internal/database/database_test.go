package database

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/test/servers"
)

func count(t *testing.T, d DB) (n int) {
	t.Helper()
	if err := d.Read().Row(t.Context(), `SELECT count(*) FROM t`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestChange shows that changes that share a commit succeed and fail independently. A change that
// fails or panics is undone, and the others are committed.
func TestChange(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testChange(t, open(t, filepath.Join(t.TempDir(), "a.db"))) })
	t.Run("postgres", func(t *testing.T) { testChange(t, openAt(t, servers.Postgres(t), 4)) })
}

func testChange(t *testing.T, d DB) {
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			err := d.Change(context.Background(), func(tx Tx) error {
				if err := insert(fmt.Sprint(i))(tx); err != nil {
					return err
				}
				switch i % 3 {
				case 1:
					return problem.NoSuch("thing")
				case 2:
					panic("no")
				}
				return nil
			})
			if (err == nil) != (i%3 == 0) {
				t.Errorf("change %d = %v, want success for every third change only", i, err)
			}
		})
	}

	wg.Wait()
	if got := count(t, d); got != 100 {
		t.Errorf("%d rows, want the 100 of the successful changes", got)
	}
	if err := d.Change(t.Context(), insert("0")); !IsUnique(err) {
		t.Errorf("the same row again = %v, want a unique violation", err)
	}

	later := func(tx Tx) error {
		return errors.Join(tx.Later(t.Context(), `INSERT INTO t (id) VALUES ('later')`),
			tx.Later(t.Context(), `INSERT INTO t (id) VALUES ('0')`))
	}
	if err := d.Change(t.Context(), later); !IsUnique(err) || count(t, d) != 100 {
		t.Errorf("the same row later = %v, want a unique violation and nothing written", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	gone := func(tx Tx) error {
		cancel()
		return errors.Join(insert("gone")(tx), tx.Later(ctx, `INSERT INTO t (id) VALUES ('gone, too')`))
	}
	if err := d.Change(ctx, gone); err != nil || count(t, d) != 102 {
		t.Errorf("a change whose context is canceled while it runs = %v, want success", err)
	}
	if err := d.Change(ctx, insert("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("a change with a canceled context = %v, want canceled", err)
	}

	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Errorf("Close, twice = %v, want nil", err)
	}
	if err := d.Change(t.Context(), insert("after")); !errors.Is(err, problem.Unavailable) ||
		!errors.Is(err, ErrClosed) {
		t.Errorf("a change after Close = %v, want unavailable", err)
	}
}
