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

// TestChange shows that changes that share a commit succeed and fail independently: a change that fails
// or panics is undone, and the others are committed.
func TestChange(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testChange(t, open(t, filepath.Join(t.TempDir(), "a.db"))) })
	t.Run("postgres", func(t *testing.T) { testChange(t, openAt(t, servers.Postgres(t), 4)) })
}

func testChange(t *testing.T, d DB) {
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if err := d.Change(context.Background(), insert(fmt.Sprint(i))); err != nil {
				t.Errorf("change %d = %v, want success", i, err)
			}
		})
		wg.Go(func() {
			err := d.Change(context.Background(), func(tx Tx) error {
				return errors.Join(insert(fmt.Sprint("failing", i))(tx), problem.NoSuch("thing"))
			})
			if err == nil {
				t.Errorf("failing change %d succeeds, want an error", i)
			}
		})
		wg.Go(func() {
			err := d.Change(context.Background(), func(tx Tx) error {
				_ = insert(fmt.Sprint("panicking", i))(tx)
				panic("no")
			})
			if err == nil {
				t.Errorf("panicking change %d succeeds, want an error", i)
			}
		})
	}

	wg.Wait()
	wantRows(t, d, 100)
	if err := d.Change(t.Context(), insert("0")); !IsUnique(err) {
		t.Errorf("the same row again = %v, want a unique violation", err)
	}

	later := func(tx Tx) error {
		return errors.Join(
			tx.Later(t.Context(), `INSERT INTO t (id) VALUES ('later')`),
			tx.Later(t.Context(), `INSERT INTO t (id) VALUES ('0')`))
	}
	if err := d.Change(t.Context(), later); !IsUnique(err) {
		t.Errorf("the same row later = %v, want a unique violation", err)
	}
	wantRows(t, d, 100)

	ctx, cancel := context.WithCancel(t.Context())
	canceled := func(tx Tx) error {
		cancel()
		return errors.Join(
			insert("gone")(tx),
			tx.Later(ctx, `INSERT INTO t (id) VALUES ('gone, too')`))
	}
	if err := d.Change(ctx, canceled); err != nil {
		t.Errorf("a change whose context is canceled while it runs = %v, want success", err)
	}
	wantRows(t, d, 102)
	if err := d.Change(ctx, insert("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("a change with a canceled context = %v, want context.Canceled", err)
	}

	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Errorf("Close, twice = %v, want nil", err)
	}
	err := d.Change(t.Context(), insert("after"))
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("a change after Close = %v, want problem.Unavailable", err)
	}
	if !errors.Is(err, ErrClosed) {
		t.Errorf("a change after Close = %v, want ErrClosed", err)
	}
}

func wantRows(t *testing.T, d DB, want int) {
	t.Helper()
	if n := count(t, d); n != want {
		t.Errorf("the table has %d rows, want %d", n, want)
	}
}
