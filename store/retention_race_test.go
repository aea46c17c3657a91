package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
)

// TestRulesTogether shows that retention rules that are added concurrently do not exceed the limit.
func TestRulesTogether(t *testing.T) { store.EachDatabase(t, testRulesTogether) }

func testRulesTogether(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	won := race(t, problem.Invalid, func(i int) error {
		return s.AddRule(t.Context(), recordings.Rule{
			ID:        newID(),
			ProjectID: p.ID,
			Tag:       fmt.Sprint("tag", i),
			Days:      1,
			Created:   time.Now(),
		}, 1)
	})
	if won != 1 {
		t.Errorf("%d of %d rules were added, want 1", won, crowd)
	}
}
