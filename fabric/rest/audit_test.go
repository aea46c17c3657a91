package rest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// TestAudit shows that credentials with Management can list the audit trail of a project page by
// page. Other credentials cannot.
func TestAudit(t *testing.T) {
	type event struct {
		ID, Action, Outcome string
		TargetID            string `json:"target_id"`
		ProjectID           string `json:"project_id"`
	}

	type list struct {
		Data  []event
		Links struct{ Next string }
	}

	const path = "/api/fabric/audit"
	w, other := newWorld(t), newWorld(t)
	boss, stranger := w.manager(), other.manager()
	for range 3 {
		w.webhook(boss, `{"url":"https://example.com/a?secret=canary"}`)
	}

	var got []event
	for at := path + "?action=webhook&page_size=2"; at != ""; {
		r := w.call(boss, "GET", at, "")
		if r.status != http.StatusOK {
			t.Fatalf("GET %s: got %d %s, want 200", at, r.status, r.text)
		}
		p := as[list](t, r)
		got, at = append(got, p.Data...), p.Links.Next
	}

	if len(got) != 3 {
		t.Fatalf("there are %d events of webhooks, want 3", len(got))
	}

	for i, e := range got {
		if e.Action != "webhook.created" || e.Outcome != "done" || e.ProjectID != w.project.ID || i > 0 &&
			e.ID >= got[i-1].ID {
			t.Errorf("event %d is %+v, want webhook.created, the newest first", i, e)
		}
	}

	if p := as[list](t, w.call(boss, "GET", path+"?target_id="+got[0].TargetID, "")); len(p.Data) != 1 {
		t.Errorf("there are %d events of one target, want 1", len(p.Data))
	}
	if p := as[list](t, w.call(boss, "GET", path+"?until=2020-01-01T00:00:00Z", "")); len(p.Data) != 0 {
		t.Errorf("there are %d events from before the project, want 0", len(p.Data))
	}
	if p := as[list](t, other.call(stranger, "GET", path+"?action=webhook", "")); len(p.Data) != 0 {
		t.Errorf("another project sees %d events of webhooks, want none", len(p.Data))
	}

	for _, bad := range []string{"?outcome=odd", "?since=yesterday", "?until=2030-13-01T00:00:00Z"} {
		if r := w.call(boss, "GET", path+bad, ""); r.status != http.StatusUnprocessableEntity {
			t.Errorf("GET %s%s: got %d %s, want 422", path, bad, r.status, r.text)
		}
	}

	_, voice := w.newKey(time.Time{}, fabric.Voice)
	if r := w.call(voice, "GET", path, ""); r.status != http.StatusUnauthorized {
		t.Errorf("GET %s without Management: got %d, want 401", path, r.status)
	}
}
