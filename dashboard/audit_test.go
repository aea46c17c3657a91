package dashboard_test

import (
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// Why somebody cannot sign in is found by the e-mail they say that they use, and told in
// words with what to do, be it nobody's.
func TestAuditExplains(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	ctx, mail, secret := context.Background(), "ada@example.com", "a loom of one's own"
	s, err := w.fabric.CreateSubscriber(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail, Password: &secret})
	must(t, err)
	for _, email := range []string{mail, "Ada@exmaple.com"} {
		if _, err := w.idp.LogIn(ctx, w.one.ID, email, "wrong", idp.Visitor{}); !errors.Is(err, problem.Unauthenticated) {
			t.Fatalf("LogIn(%s): %v", email, err)
		}
	}
	base := "/dashboard/projects/" + w.one.ID + "/audit"
	for account, want := range map[string]string{" ADA@example.com ": "The password was wrong.", "ada@exmaple.com": "Nobody here has this e-mail", "bob@example.com": "Nobody tried to sign in"} {
		a := b.get(base + "?action=login&account=" + url.QueryEscape(account))
		if !strings.Contains(a.body, want) {
			t.Errorf("the audit of %q: %s, want %q", account, a.Status, want)
		}
		if n := strings.Count(a.body, `class="why"`); want[0] != 'T' && n > 1 || strings.Contains(a.body, s.ID) != (want[0] == 'T') {
			t.Errorf("the audit of %q has %d others' refusals", account, n)
		}
	}
	if a := b.get(base); !strings.Contains(a.body, "/subscribers/"+s.ID+`">`) {
		t.Error("the subscriber is no link")
	}
}

// The trail of a project is a file without formulas, of that project alone.
func TestAuditExport(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	ctx := context.Background()
	for _, p := range []fabric.Project{w.one, w.two} {
		name := "=HYPERLINK(\"http://evil.example\")" + p.Name
		_, err := w.fabric.UpdateProject(ctx, p.ID, fabric.ProjectChange{Name: &name})
		must(t, err)
		w.record(p.ID, "@SUM(1)")
	}
	a := b.get("/dashboard/projects/" + w.one.ID + "/audit/export?action=recording")
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("the export: %s %v", a.Status, a.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("the export has %d rows: %v", len(rows), err)
	}
	for i, cell := range rows[1] {
		if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
			t.Errorf("the cell of %s is %q", rows[0][i], cell)
		}
	}
	if rows[1][2] != w.one.ID {
		t.Errorf("the export has an event of the project %s", rows[1][2])
	}
	if a := b.get("/dashboard/projects/" + w.one.ID + "/audit/export?after=soon"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a day that is none: %s", a.Status)
	}
}
