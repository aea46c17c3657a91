package server

import (
	"context"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/store/storetest"
)

// TestPruneAuditAgain shows that the next sweep prunes the audit trail if pruning has failed before.
// After a success, the trail is pruned once a day.
func TestPruneAuditAgain(t *testing.T) {
	a := &App{backends: backends{Store: storetest.Rows(t)}}
	if err := a.Config.Audit.Keep.UnmarshalText([]byte("400d")); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()

	pruned, err := pruner{a}.pruneAudit(stopped, time.Time{})
	if err == nil {
		t.Error("pruneAudit without the database = nil, want an error")
	}
	if !pruned.IsZero() {
		t.Errorf("after a failure, the trail is pruned until %s, want never", pruned)
	}

	pruned, err = pruner{a}.pruneAudit(t.Context(), pruned)
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(pruned); age < 400*span.Day || age > 402*span.Day {
		t.Errorf("the trail is pruned until %s, want about 400 days ago", pruned)
	}

	again, err := pruner{a}.pruneAudit(stopped, pruned)
	if err != nil || !again.Equal(pruned) {
		t.Errorf("pruneAudit on the same day = %s, %v, want nothing done", again, err)
	}
}
