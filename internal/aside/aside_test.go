package aside_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/selvage/selvage/internal/aside"
)

// However often something is asked for, it is done once at a time, and what was asked for
// is done before Wait is over.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q aside.Queue
		held, release := 0, make(chan struct{})
		for range 1000 {
			q.Do("key", func() { held++; <-release })
		}
		done := map[string]int{}
		for i := range 300 {
			name := fmt.Sprint(i % 100)
			q.Do(name, func() { done[name]++ })
		}
		synctest.Wait()
		if held != 1 || len(done) != 0 {
			t.Errorf("while the first is held it was begun %d times, and %d others", held, len(done))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Wait(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait with a context that has ended, while something is held = %v", err)
		}
		close(release)
		if err := q.Wait(t.Context()); err != nil || held != 1 || len(done) != 100 || done["7"] != 1 {
			t.Errorf("after Wait = %v the first was done %d times, of 100 others %d", err, held, len(done))
		}
		q.Do("key", func() { held++ })
		if err := q.Wait(t.Context()); err != nil || held != 2 {
			t.Errorf("after it was done it is done again: Wait = %v, %d times", err, held)
		}
	})
}
