package database

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/selvage/selvage/internal/problem"
)

func makeTable(ctx context.Context, db *sql.DB, _ Dialect) error {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS t (id TEXT PRIMARY KEY)`)
	return err
}

func open(t *testing.T, name string) *file {
	t.Helper()
	c := config(name)
	c.Check = 0
	d, err := openFile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func insert(id string) func(Tx) error {
	return func(t Tx) error {
		_, err := t.Exec(context.Background(), `INSERT INTO t (id) VALUES ($1)`, id)
		return err
	}
}

// TestOpenTogether shows that if a database is opened several times at once, its schema is created
// once.
func TestOpenTogether(t *testing.T) {
	for range 20 { // repeated, since most starts do not cause the races that are hard to handle
		c := config(filepath.Join(t.TempDir(), "a.db"))
		c.Check = 0
		c.Prepare = makeMissingTable
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				d, err := Open(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				_ = d.Close()
			})
		}
		wg.Wait()
	}
}

// TestClosed shows that after Close, the process has none of the database's files open.
func TestClosed(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("only Linux lists the open files of a process")
	}
	file := filepath.Join(t.TempDir(), "a.db")
	d := open(t, file)
	if err := d.Change(t.Context(), insert("a")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, file) {
			t.Errorf("%s is still open", name)
		}
	}
}

// TestBusy shows that while another connection locks the file, changes fail with problem.Unavailable, not
// with an internal error.
func TestBusy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	d, other := open(t, file), open(t, file)

	release := make(chan struct{})
	held := make(chan struct{})
	go func() {
		_ = other.Change(context.Background(), func(tx Tx) error {
			err := insert("other")(tx)
			close(held)
			<-release
			return err
		})
	}()

	<-held
	if err := d.writer.exec(`PRAGMA busy_timeout = 1`); err != nil {
		t.Fatal(err)
	}
	if err := d.Change(t.Context(), insert("a")); !errors.Is(err, problem.Unavailable) {
		t.Errorf("a change while the file is locked = %v, want problem.Unavailable", err)
	}
	close(release)
}

func TestPath(t *testing.T) {
	for url, want := range map[string]string{
		"sqlite:a.db":    "/data/a.db",
		"sqlite:/x/a.db": "/x/a.db",
	} {
		got, err := filePath(url, "/data")
		if err != nil || got != want {
			t.Errorf("filePath(%q) = %q, %v, want %q", url, got, err, want)
		}
	}

	for _, url := range []string{"sqlite:", "postgres://u:hush@h/db", ""} {
		got, err := filePath(url, "/data")
		if err == nil || got != "" {
			t.Errorf("filePath(%q) = %q, %v, want an error and no path", url, got, err)
			continue
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("filePath(%q) = %v, want an error without the password", url, err)
		}
	}
}
