package background_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/background"
)

// TestQueue shows that a job is not queued again before it has ended, and that every queued job has ended
// when Wait returns.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q background.Queue
		release := make(chan struct{})
		runs := make(map[string]int)
		for range 1000 {
			q.Do("first", func() {
				runs["first"]++
				<-release
			})
		}
		for i := range 300 {
			name := fmt.Sprint(i % 100)
			q.Do(name, func() { runs[name]++ })
		}

		synctest.Wait()
		if diff := cmp.Diff(map[string]int{"first": 1}, runs); diff != "" {
			t.Errorf("while the first job runs, these have run (-want +got):\n%s", diff)
		}

		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Wait(canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait with a canceled context, while a job runs = %v, want context.Canceled", err)
		}

		close(release)
		if err := q.Wait(t.Context()); err != nil {
			t.Fatalf("Wait = %v, want nil", err)
		}
		want := map[string]int{"first": 1}
		for i := range 100 {
			want[fmt.Sprint(i)] = 1
		}
		if diff := cmp.Diff(want, runs); diff != "" {
			t.Errorf("after Wait, these have run (-want +got):\n%s", diff)
		}

		q.Do("first", func() { runs["first"]++ })
		if err := q.Wait(t.Context()); err != nil {
			t.Fatalf("Wait = %v, want nil", err)
		}
		if n := runs["first"]; n != 2 {
			t.Errorf("the first job, queued again after it ended, ran %d times, want 2", n)
		}
	})
}
