package database

import (
	"errors"
	"path/filepath"
	"runtime"
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

	leave := func(v any, refusal error) error {
		return d.Change(t.Context(), func(tx Tx) error {
			recalled = append(recalled, tx.Recall())
			if err := tx.Remember(v, func(Tx) error {
				if fails > 0 {
					fails--
					return wrong
				}
				return nil
			}); err != nil {
				return err
			}
			return refusal
		})
	}

	steps := []struct {
		name    string
		fails   int
		refusal error
		want    error
		recalls []any
	}{
		{"the first", 0, nil, nil, []any{nil}},
		{"the next", 0, nil, nil, []any{"the first"}},
		{"one that is refused", 0, wrong, wrong, []any{"the next"}},
		{"one after it", 0, nil, nil, []any{nil}},
		{"another process has written", 1, nil, nil, []any{"one after it", nil}},
		{"one that fails twice", 2, nil, wrong, []any{"another process has written", nil}},
		{"one that fails with nothing recalled", 1, nil, wrong, []any{nil}},
		{"the last", 0, nil, nil, []any{nil}},
	}

	for _, tt := range steps {
		recalled, fails = nil, tt.fails
		if err := leave(tt.name, tt.refusal); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}

		if len(recalled) != len(tt.recalls) {
			t.Fatalf("%s: recalled %v, want %v", tt.name, recalled, tt.recalls)
		}
		for i := range recalled {
			if recalled[i] != tt.recalls[i] {
				t.Errorf("%s: recalled %v, want %v", tt.name, recalled, tt.recalls)
			}
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
	lasts, left := 0, 0
	errs := make([]error, many)

	for i := range many {
		wg.Go(func() {
			errs[i] = d.Change(t.Context(), func(tx Tx) error {
				n, _ := tx.Recall().(int)
				if err := tx.Remember(n+1, func(Tx) error { lasts, left = lasts+1, n+1; return nil }); err != nil {
					return err
				}
				if i%3 == 0 {
					return refusal
				}
				return nil
			})
		})
	}

	for len(d.writer.queue) < many {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()

	for i, err := range errs {
		if errors.Is(err, refusal) != (i%3 == 0) {
			t.Errorf("change %d: %v, want every third change refused", i, err)
		}
	}

	if lasts != 1 || left != many*2/3 {
		t.Errorf("%d functions ran before the commit, and the value is %d, want 1 and %d", lasts, left, many*2/3)
	}
}
