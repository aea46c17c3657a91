package calls

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeat shows that repeat does not call its function again after its context is done, even if
// the next call is already due. Go chooses at random between the two, so the test tries several
// times.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 30 {
			ctx, cancel := context.WithCancel(t.Context())
			times := 0
			repeat(ctx, func() {
				times++
				cancel()
				time.Sleep(2 * watchEvery) // the clock of synctest
			})
			if times != 1 {
				t.Fatalf("the function was called %d times, want once", times)
			}
		}
	})
}
