package dashboard_test

import (
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// TestAuditExplains shows that the audit page finds failed logins by email, known or unknown,
// and explains each with a remedy.
func TestAuditExplains(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	ctx, mail, secret := context.Background(), "ada@example.com", "a loom of one's own"
	s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail, Password: &secret})
	must(t, err)

	// One email address belongs to a subscriber, and the other contains a typing error.
	for _, email := range []string{mail, "Ada@exmaple.com"} {
		if _, err := w.idp.Logins.LogIn(ctx, w.one.ID, email, "wrong", idp.Visitor{}); !errors.Is(err,
			problem.Unauthenticated) {
			t.Fatalf("LogIn(%s): %v, want Unauthenticated", email, err)
		}
	}

	base := "/dashboard/projects/" + w.one.ID + "/audit"
	for account, want := range map[string]string{" ADA@example.com ": "The password was wrong.",
		"ada@exmaple.com": "No account here has this email", "bob@example.com": "Nobody has tried to sign in"} {
		a := b.get(base + "?action=login&account=" + url.QueryEscape(account))
		if !strings.Contains(a.body, want) {
			t.Errorf("the audit page of %q returned %s, want %q", account, a.Status, want)
		}
		if n := strings.Count(a.body, `class="why"`); want[0] != 'T' && n > 1 ||
			strings.Contains(a.body, s.ID) != (want[0] == 'T') {
			t.Errorf("the audit page of %q has %d refusals, or events of another account", account, n)
		}
	}

	// A name finds the events of its subscriber, too.
	if a := b.get(base + "?q=" + s.ID); !strings.Contains(a.body, "The password was wrong.") {
		t.Error("the id of the subscriber does not find the failed login")
	}
	if a := b.get(base + "?q=Nobody+Known"); !strings.Contains(a.body, "No actor and no target has this name") ||
		strings.Contains(a.body, `class="why"`) {
		t.Error("an unknown name finds events, or is not explained")
	}

	// The known subscriber is a link, and the unknown email is explained.
	a := b.get(base)
	if !strings.Contains(a.body, "/subscribers/"+s.ID+`" title="`+s.ID+`"><bdi>ada@example.com</bdi></a>`) {
		t.Error("the subscriber is not linked by name")
	}
	if !strings.Contains(a.body, ">An unknown address<") {
		t.Errorf("an unknown address is not explained: %s", a.body)
	}
}

// TestAuditNames shows that the audit page displays the names of actors and targets. A deleted
// subscriber's name is shown until the subscriber is erased. A target that belongs to another
// project or is of an unknown kind is described by its kind.
func TestAuditNames(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	ctx, base := t.Context(), "/dashboard/projects/"+w.one.ID
	gone, name := "gone@example.com", "billing"
	k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	other, _, err := w.fabric.APIKeys.Create(
		ctx, w.two.ID, fabric.APIKeyInput{Name: &gone, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	// Record an event by an API key, an event about a key of another project, an event about an
	// entity of an unknown kind, and an event about a deleted subscriber.
	must(t, w.rows.Record(ctx, audit.Of("recording.deleted", w.one.ID, "recording", "").By(audit.APIKey, k.ID)))
	must(t, w.rows.Record(ctx, audit.Of("recording.deleted", w.one.ID, "api_key", other.ID)))
	must(t, w.rows.Record(ctx, audit.Of("thing.of_before", w.one.ID, "thing_of_before", "an-id")))

	left, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &gone})
	must(t, err)
	must(t, w.fabric.Subscribers.Delete(ctx, w.one.ID, left.ID))

	a := b.get(base + "/audit")
	for _, want := range []string{
		`/keys/` + k.ID + `" title="` + k.ID + `"><bdi>billing</bdi></a> <span class="quiet">API key</span>`,
		">thing.of_before<", ">Thing of before<",
		`/subscribers/` + left.ID + `" title="` + left.ID + `"><bdi>gone@example.com</bdi></a> (deleted)`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the audit has no %q: %s", want, a.body)
		}
	}

	if n := strings.Count(a.body, gone); n != strings.Count(a.body, gone+"</bdi></a> (deleted)") {
		t.Error("a target of another project is named")
	}
	if a := b.get(base + "/audit?target=Gone@example.com"); !strings.Contains(a.body, left.ID) ||
		strings.Contains(a.body, k.ID) {
		t.Error("the events of a deleted subscriber are not found by its email")
	}

	_, err = w.fabric.Subscribers.Erase(ctx, w.one.ID, left.ID)
	must(t, err)
	if a := b.get(base + "/audit"); strings.Contains(a.body, gone) ||
		!strings.Contains(a.body, `<span title="`+left.ID+`">Subscriber</span>`) {
		t.Error("an erased subscriber is named")
	}
}

// TestAuditExportNames shows that an export names actors and targets, and marks deleted subscribers.
func TestAuditExportNames(t *testing.T) {
	w := newWorld(t)
	ann, b := w.operator("ann@example.com", ofAll)
	base, names := "/dashboard/projects/"+w.one.ID, map[string]string{}
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

	rows, err := csv.NewReader(strings.NewReader(b.get(base + "/audit/export").body)).ReadAll()
	must(t, err)
	of := func(row []string, column string) string { return row[slices.Index(rows[0], column)] }
	disabled := 0
	for _, row := range rows[1:] {
		if want, ok := names[of(row, "target_id")]; ok && of(row, "target_name") != want {
			t.Errorf("the target of %v is named %q, want %q", row, of(row, "target_name"), want)
		}
		if of(row, "action") != "subscriber.disabled" {
			continue
		}
		disabled++
		if of(row, "actor_id") != ann.ID || of(row, "actor_name") != ann.Title() {
			t.Errorf("the actor of %v is not %s", row, ann.Title())
		}
	}
	if disabled != 2 {
		t.Errorf("the export has %d of the 2 expected events", disabled)
	}
}

// TestAuditHindrance shows that the audit page of an account says what prevents its subscriber from
// signing in.
func TestAuditHindrance(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.eve(t, b)
	email := b.get(one).find(t, `<h1><bdi>([^<]+)</bdi>`)
	at := "/dashboard/projects/" + w.one.ID + "/audit?action=login&account=" + url.QueryEscape(email)
	shows := func(want string) {
		t.Helper()
		if a := b.get(at); !strings.Contains(a.body, `id="hindrance"><a href="`+one+`">`) ||
			!strings.Contains(a.body, want) {
			t.Errorf("%s: the page lacks %q", a.Status, want)
		}
	}

	shows("An invitation lets them choose a password.")
	b.post(one, one+"/invite", nil)
	shows("They were invited, but have not accepted yet.")
	w.send(t)
	w.pass(60 * 24 * time.Hour)
	b.signIn("ann@example.com")
	shows("their invitation has failed or expired")
	must(t, w.accept(t, handOver(t, b, one)))
	if a := b.get(at); a.StatusCode != http.StatusOK || strings.Contains(a.body, `id="hindrance"`) {
		t.Errorf("after a password was set: %s, want 200 without a hindrance: %s", a.Status, a.body)
	}

	b.post(one, one+"/disable", nil)
	shows("The account is disabled.")
	if a := b.get(strings.Replace(at, "account=", "account=no", 1)); strings.Contains(a.body, `id="hindrance"`) {
		t.Error("an unknown account has a hindrance")
	}
}

// TestAuditActors shows that events are found by actors whose ids are not UUIDs: commands and imported
// clients.
func TestAuditActors(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for id, kind := range map[string]audit.ActorKind{"root": audit.CLI, "shop-app": audit.Client} {
		deleted := audit.Of("recording.deleted", w.one.ID, "recording", "of-"+id)
		must(t, w.rows.Record(t.Context(), deleted.By(kind, id)))
	}

	for _, path := range []string{"/dashboard/projects/" + w.one.ID + "/audit", "/dashboard/audit"} {
		for _, id := range []string{"root", "shop-app"} {
			rows, err := csv.NewReader(strings.NewReader(b.get(path + "/export?actor=" + id).body)).ReadAll()
			must(t, err)
			if len(rows) != 2 || !slices.Contains(rows[1], "of-"+id) {
				t.Errorf("%s: the events by %s are %v", path, id, rows)
			}
		}
	}
}

// TestAuditActions shows that each change of a subscriber is described in its own words.
func TestAuditActions(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	ctx, base := t.Context(), "/dashboard/projects/"+w.one.ID
	mail, secret := "ada@example.com", good
	s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail, Password: &secret})
	must(t, err)

	one := base + "/subscribers/" + s.ID
	for _, step := range [][2]string{{"disable", "disabled"}, {"enable", "enabled"}, {"revoke", "signedout"}} {
		b.post(one, one+"/"+step[0], nil).leadsTo(t, one+"?done="+step[1])
	}
	b.post(one+"/edit", one+"/edit", url.Values{"email": {mail},
		"password": {"another loom of one's own"}}).leadsTo(t, one+"?done=changed")

	moved, no := "moved@example.com", false
	_, err = w.fabric.Subscribers.Update(ctx, w.one.ID, s.ID, fabric.SubscriberInput{Email: &moved, Disabled: &no})
	must(t, err)
	if last, err := w.rows.ListAudit(ctx, audit.Filter{ProjectID: w.one.ID}, firstPage); err != nil ||
		last.Items[0].Action != "subscriber.updated" || last.Items[0].Detail["changed"] != "email" {
		t.Errorf("an update of only the email is recorded as %+v, %v", last.Items[0], err)
	}

	a := b.get(base + "/audit")
	for _, want := range []string{
		"Subscriber disabled <", "Subscriber enabled <", "Signed out everywhere <",
		"Subscriber password changed <", ">session.ended_all<",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the audit has no %q: %s", want, a.body)
		}
	}
}

// TestAuditReaders shows that viewers see the actor of an event without a link, and that the audit
// page of the installation finds operators by email.
func TestAuditReaders(t *testing.T) {
	w := newWorld(t)
	ann, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	base, mail := "/dashboard/projects/"+w.one.ID, "ada@example.com"
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)
	one := base + "/subscribers/" + s.ID
	b.post(one, one+"/disable", nil).leadsTo(t, one+"?done=disabled")

	if a := viewer.get(base + "/audit"); !strings.Contains(a.body,
		`<bdi title="`+ann.ID+`">ann@example.com</bdi> <span class="quiet">Operator</span>`) {
		t.Errorf("a viewer does not see who acted: %s", a.body)
	}

	if a := b.get("/dashboard/audit?account=viewer@example.com"); !strings.Contains(a.body, "Signed in <") ||
		strings.Contains(a.body, ann.ID) {
		t.Errorf("the audit page of an operator's email shows %s", a.body)
	}
	if a := b.get("/dashboard/audit?account=nobody@example.com"); !strings.Contains(a.body, "No events found") {
		t.Errorf("the audit page of an unknown email shows %s", a.body)
	}
	if a := b.get("/dashboard/audit?action=subscriber"); !strings.Contains(a.body, "in <bdi>One</bdi>") {
		t.Errorf("the installation's audit page does not name the projects: %s", a.body)
	}
}

// TestAuditExport shows that the exported audit trail of a project contains no spreadsheet formulas
// and no events of other projects.
func TestAuditExport(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	ctx := context.Background()

	for _, p := range []fabric.Project{w.one, w.two} {
		name := "=HYPERLINK(\"http://evil.example\")" + p.Name
		_, err := w.fabric.Projects.Update(ctx, p.ID, fabric.ProjectChange{Name: &name})
		must(t, err)
		w.record(p.ID, "@SUM(1)")
	}

	a := b.get("/dashboard/projects/" + w.one.ID + "/audit/export?action=recording")
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/csv; charset=utf-8" ||
		!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("the export returned %s %v", a.Status, a.Header)
	}

	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("the export has %d rows, want 2: %v", len(rows), err)
	}

	for i, cell := range rows[1] {
		if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
			t.Errorf("the cell of %s is %q, which a spreadsheet could treat as a formula", rows[0][i], cell)
		}
	}
	if rows[1][2] != w.one.ID {
		t.Errorf("the export has an event of another project, %s", rows[1][2])
	}

	at := "/dashboard/projects/" + w.one.ID + "/audit"
	if a := b.get(at + "?after=soon"); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `<a href="#f-after">`) || !strings.Contains(a.body, "From must be a day") {
		t.Errorf("the page for an invalid day returned %s, want 422 with an error at the day", a.Status)
	}
	if a := b.get(at + "/export?after=soon"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the export for an invalid day returned %s, want 422", a.Status)
	}
}

// TestAuditNothingFound shows that an empty list about an account names the other filters as the
// reason, if there are any, and otherwise says that nobody has tried to sign in.
func TestAuditNothingFound(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	at := "/dashboard/projects/" + w.one.ID + "/audit?account=nobody%40example.com"
	for query, want := range map[string]string{
		"":                 "Nobody has tried to sign in",
		"&action=login":    "Nobody has tried to sign in",
		"&outcome=refused": "Remove the other filters",
	} {
		if a := b.get(at + query); !strings.Contains(a.body, want) {
			t.Errorf("the page with %q lacks %q", query, want)
		}
	}
}
