package dashboard_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestAuditExportNames shows that an export names actors and targets, and marks deleted subscribers.
func TestAuditExportNames(t *testing.T) {
	w := newWorld(t)
	ann, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	names := map[string]string{} // the expected names of subscribers, by id
	for _, email := range []string{"ada@example.com", "gone@example.com"} {
		s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		names[s.ID] = email
		one := base + "/subscribers/" + s.ID
		b.post(one, one+"/disable", nil).leadsTo(t, one+"?done=disabled")
		if email == "gone@example.com" {
			must(t, w.fabric.Subscribers.Delete(t.Context(), w.one.ID, s.ID))
			names[s.ID] = email + " (deleted)"
		}
	}

	rows := b.exported(base + "/audit/export")
	cell := func(row []string, column string) string { return row[slices.Index(rows[0], column)] }
	disabled := 0
	for _, row := range rows[1:] {
		want, ok := names[cell(row, "target_id")]
		if got := cell(row, "target_name"); ok && got != want {
			t.Errorf("the target of %v is named %q, want %q", row, got, want)
		}
		if cell(row, "action") != "subscriber.disabled" {
			continue
		}
		disabled++
		if id := cell(row, "actor_id"); id != ann.ID {
			t.Errorf("the actor of %v is %s, want %s", row, id, ann.ID)
		}
		if name := cell(row, "actor_name"); name != ann.Title() {
			t.Errorf("the actor of %v is named %q, want %q", row, name, ann.Title())
		}
	}
	if disabled != 2 {
		t.Errorf("the export has %d events about disabled subscribers, want 2", disabled)
	}
}

// exported returns the rows of an exported file, with its header.
func (b browser) exported(path string) [][]string {
	b.Helper()
	rows, err := csv.NewReader(strings.NewReader(b.get(path).body)).ReadAll()
	must(b, err)
	return rows
}

// TestAuditExport shows that the exported audit trail of a project contains no spreadsheet formulas
// and no events of other projects.
func TestAuditExport(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	ctx := t.Context()

	for _, p := range []fabric.Project{w.one, w.two} {
		name := "=HYPERLINK(\"http://evil.example\")" + p.Name
		_, err := w.fabric.Projects.Update(ctx, p.ID, fabric.ProjectChange{Name: &name})
		must(t, err)
		w.record(p.ID, "@SUM(1)")
	}

	at := "/dashboard/projects/" + w.one.ID + "/audit"
	file := b.get(at + "/export?action=recording")
	file.wantStatus(t, http.StatusOK)
	file.wantHeader(t, "Content-Type", "text/csv; charset=utf-8")
	if got := file.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") {
		t.Errorf("the export is sent as %q, want an attachment", got)
	}

	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	must(t, err)
	if len(rows) != 2 {
		t.Fatalf("the export has %d rows, want 2", len(rows))
	}
	for i, cell := range rows[1] {
		if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
			t.Errorf("the cell of %s is %q, which a spreadsheet could treat as a formula", rows[0][i], cell)
		}
	}
	if project := rows[1][2]; project != w.one.ID {
		t.Errorf("the export has an event of the project %s, want only %s", project, w.one.ID)
	}

	b.get(at+"?after=soon").wantRefused(t, `<a href="#f-after">`, "From must be a day")
	b.get(at + "/export?after=soon").wantRefused(t)
}
