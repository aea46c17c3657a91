package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAudit shows that credentials with Management can list the audit trail of a project page by
// page. Other credentials cannot.
func TestAudit(t *testing.T) {
	type event struct {
		ID, Action, Outcome string
		TargetID            string `json:"target_id"`
		ProjectID           string `json:"project_id"`
	}

	const path = "/api/fabric/audit"
	w, other := newWorld(t), newWorld(t)
	boss := w.manager()
	for range 3 {
		w.webhook(boss, `{"url":"https://example.com/a?secret=canary"}`)
	}

	var got []event
	for next := path + "?action=webhook&page_size=2"; next != ""; {
		r := w.call(boss, "GET", next, "")
		r.wantStatus(t, "GET "+next, http.StatusOK)
		page := as[listed[event]](t, r)
		got = append(got, page.Data...)
		next = page.Links["next"]
	}
	if len(got) != 3 {
		t.Fatalf("there are %d events of webhooks, want 3", len(got))
	}

	for i, e := range got {
		want := event{
			ID:        e.ID,
			Action:    "webhook.created",
			Outcome:   "done",
			TargetID:  e.TargetID,
			ProjectID: w.project.ID,
		}
		if e != want {
			t.Errorf("event %d is %+v, want %+v", i, e, want)
		}
	}
	newestFirst := func(a, b event) int { return strings.Compare(b.ID, a.ID) }
	if !slices.IsSortedFunc(got, newestFirst) {
		t.Errorf("the events are %+v, want the newest first", got)
	}

	for _, tt := range []struct {
		what  string
		reply reply
		want  int
	}{
		{"of one target", w.call(boss, "GET", path+"?target_id="+got[0].TargetID, ""), 1},
		{"from before the project", w.call(boss, "GET", path+"?until=2020-01-01T00:00:00Z", ""), 0},
		{"of webhooks for another project", other.call(other.manager(), "GET", path+"?action=webhook", ""), 0},
	} {
		if n := len(as[listed[event]](t, tt.reply).Data); n != tt.want {
			t.Errorf("there are %d events %s, want %d", n, tt.what, tt.want)
		}
	}

	for _, query := range []string{"?outcome=odd", "?since=yesterday", "?until=2030-13-01T00:00:00Z"} {
		r := w.call(boss, "GET", path+query, "")
		r.wantStatus(t, "GET "+path+query, http.StatusUnprocessableEntity)
	}
	const bad = "?until=later&since=earlier"
	const want = "since:invalid_parameter until:invalid_parameter"
	if got := w.call(boss, "GET", path+bad, "").faults(t); got != want {
		t.Errorf("GET %s: got %s, want %s", bad, got, want)
	}
	r := w.call(w.basic(), "GET", path, "")
	r.wantStatus(t, "GET without Management", http.StatusUnauthorized)
}
