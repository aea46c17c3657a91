package database

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// TestRemember shows that a change recalls the value that the previous change remembered. If a
// commit fails, the value is forgotten. If the value is no longer valid, the change runs again
// without it.
func TestRemember(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "a.db"))

	var recalled []any
	wrong := errors.New("the recalled value is wrong")
	fails := 0

	beforeCommit := func(Tx) error {
		if fails > 0 {
			fails--
			return wrong
		}
		return nil
	}
	change := func(value any, refusal error) error {
		return d.Change(t.Context(), func(tx Tx) error {
			recalled = append(recalled, tx.Recall())
			if err := tx.Remember(value, beforeCommit); err != nil {
				return err
			}
			return refusal
		})
	}

	steps := []struct {
		name     string // also the value to remember
		fails    int    // how often the value turns out to be wrong
		refusal  error
		want     error
		recalled []any
	}{
		{name: "the first", recalled: []any{nil}},
		{name: "the next", recalled: []any{"the first"}},
		{name: "one that is refused", refusal: wrong, want: wrong, recalled: []any{"the next"}},
		{name: "one after it", recalled: []any{nil}},
		{name: "another process has written", fails: 1, recalled: []any{"one after it", nil}},
		{name: "one that fails twice", fails: 2, want: wrong, recalled: []any{"another process has written", nil}},
		{name: "one that fails with nothing recalled", fails: 1, want: wrong, recalled: []any{nil}},
		{name: "the last", recalled: []any{nil}},
	}

	for _, step := range steps {
		recalled, fails = nil, step.fails
		if err := change(step.name, step.refusal); !errors.Is(err, step.want) {
			t.Errorf("%s: Change = %v, want %v", step.name, err, step.want)
		}
		if !slices.Equal(recalled, step.recalled) {
			t.Fatalf("%s: recalled %v, want %v", step.name, recalled, step.recalled)
		}
	}
}

// TestRememberTogether shows that if several changes share a commit, each recalls the value that
// the previous one remembered. A change that fails remembers nothing. Only the function of the last
// change runs before the commit.
func TestRememberTogether(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "a.db"))

	// The writer is busy until all changes are queued, so that they share a commit.
	held, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = d.Change(t.Context(), func(Tx) error {
			close(held)
			<-release
			return nil
		})
	})
	<-held

	refusal := errors.New("refused")
	const many = 30
	commits, committed := 0, 0
	for i := range many {
		refused := i%3 == 0
		change := func(tx Tx) error {
			n, _ := tx.Recall().(int)
			beforeCommit := func(Tx) error {
				commits++
				committed = n + 1
				return nil
			}
			if err := tx.Remember(n+1, beforeCommit); err != nil {
				return err
			}
			if refused {
				return refusal
			}
			return nil
		}
		wg.Go(func() {
			err := d.Change(t.Context(), change)
			if errors.Is(err, refusal) != refused {
				t.Errorf("change %d = %v, want it refused: %t", i, err, refused)
			}
		})
	}

	for len(d.writer.queue) < many {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()

	if commits != 1 {
		t.Errorf("%d functions ran before the commit, want 1", commits)
	}
	if want := many * 2 / 3; committed != want {
		t.Errorf("the remembered value is %d, want %d", committed, want)
	}
}
