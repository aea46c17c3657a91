package background_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/selvage/selvage/internal/background"
)

// TestQueue shows that no job is queued twice, not even while it runs, and that every queued job
// has ended when Wait returns.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q background.Queue
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
			t.Errorf("while the first job runs, it ran %d times, and %d others ran, want 1 and 0", held, len(done))
		}

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Wait(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait with a canceled context, while a job runs = %v, want Canceled", err)
		}

		close(release)
		if err := q.Wait(t.Context()); err != nil || held != 1 || len(done) != 100 || done["7"] != 1 {
			t.Errorf("Wait = %v: the first job ran %d times, want 1; %d of 100 others ran", err, held, len(done))
		}

		q.Do("key", func() { held++ })
		if err := q.Wait(t.Context()); err != nil || held != 2 {
			t.Errorf("queued again after the job ended: Wait = %v, the job ran %d times, want 2", err, held)
		}
	})
}
