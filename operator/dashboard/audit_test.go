package dashboard_test

import (
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
	ctx, email, secret := t.Context(), "ada@example.com", good
	s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &email, Password: &secret})
	must(t, err)

	// One email address belongs to a subscriber, and the other contains a typing error.
	for _, typed := range []string{email, "Ada@exmaple.com"} {
		_, err := w.idp.Logins.LogIn(ctx, w.one.ID, typed, "wrong", idp.Visitor{})
		if !errors.Is(err, problem.Unauthenticated) {
			t.Fatalf("LogIn(%s): %v, want Unauthenticated", typed, err)
		}
	}

	base := "/dashboard/projects/" + w.one.ID + "/audit"
	known := b.get(base + "?action=login&account=" + url.QueryEscape(" ADA@example.com "))
	known.wantText(t, "The password was wrong.", s.ID)

	for account, reason := range map[string]string{
		"ada@exmaple.com": "No account here has this email",
		"bob@example.com": "Nobody has tried to sign in",
	} {
		unknown := b.get(base + "?action=login&account=" + url.QueryEscape(account))
		unknown.wantText(t, reason)
		unknown.wantNoText(t, s.ID)
		if n := strings.Count(unknown.body, `class="why"`); n > 1 {
			t.Errorf("the audit page of %q has %d refusals, want at most 1", account, n)
		}
	}

	// A name finds the events of its subscriber, too.
	b.get(base+"?q="+s.ID).wantText(t, "The password was wrong.")
	nobody := b.get(base + "?q=Nobody+Known")
	nobody.wantText(t, "No actor and no target has this name")
	nobody.wantNoText(t, `class="why"`)

	// The known subscriber is a link, and the unknown email is explained.
	b.get(base).wantText(t,
		"/subscribers/"+s.ID+`" title="`+s.ID+`"><bdi>ada@example.com</bdi></a>`,
		">An unknown address<")
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

	trail := b.get(base + "/audit")
	trail.wantText(t,
		`/keys/`+k.ID+`" title="`+k.ID+`"><bdi>billing</bdi></a> <span class="quiet">API key</span>`,
		">thing.of_before<", ">Thing of before<",
		`/subscribers/`+left.ID+`" title="`+left.ID+`"><bdi>gone@example.com</bdi></a> (deleted)`)

	// The other project's key has the same name as the deleted subscriber.
	named, ofDeleted := strings.Count(trail.body, gone), strings.Count(trail.body, gone+"</bdi></a> (deleted)")
	if named != ofDeleted {
		t.Errorf("the name %s occurs %d times, want only %d times, for the deleted subscriber", gone, named, ofDeleted)
	}

	found := b.get(base + "/audit?target=Gone@example.com")
	found.wantText(t, left.ID)
	found.wantNoText(t, k.ID)

	_, err = w.fabric.Subscribers.Erase(ctx, w.one.ID, left.ID)
	must(t, err)
	erased := b.get(base + "/audit")
	erased.wantText(t, `<span title="`+left.ID+`">Subscriber</span>`)
	erased.wantNoText(t, gone)
}

// TestAuditHindrance shows that the audit page of an account says what prevents its subscriber from
// signing in.
func TestAuditHindrance(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.eve(t, b)
	email := b.get(one).find(t, `<h1><bdi>([^<]+)</bdi>`)
	at := "/dashboard/projects/" + w.one.ID + "/audit?action=login&account=" + url.QueryEscape(email)
	wantHindrance := func(want string) {
		t.Helper()
		b.get(at).wantText(t, `id="hindrance"><a href="`+one+`">`, want)
	}

	wantHindrance("An invitation lets them choose a password.")
	b.post(one, one+"/invite", nil)
	wantHindrance("They were invited, but have not accepted yet.")
	w.send(t)
	w.pass(60 * 24 * time.Hour)
	b.signIn("ann@example.com")
	wantHindrance("their invitation has failed or expired")
	must(t, w.accept(t, handOver(t, b, one)))
	withPassword := b.get(at)
	withPassword.wantStatus(t, http.StatusOK)
	withPassword.wantNoText(t, `id="hindrance"`)

	b.post(one, one+"/disable", nil)
	wantHindrance("The account is disabled.")
	unknown := b.get(strings.Replace(at, "account=", "account=no", 1))
	unknown.wantNoText(t, `id="hindrance"`)
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
			rows := b.exported(path + "/export?actor=" + id)
			if len(rows) != 2 {
				t.Fatalf("%s: the export of events by %s has %d lines, want 2", path, id, len(rows))
			}
			if !slices.Contains(rows[1], "of-"+id) {
				t.Errorf("%s: the event by %s is %v, want one about of-%s", path, id, rows[1], id)
			}
		}
	}
}

// TestAuditActions shows that each kind of change to a subscriber has its own description.
func TestAuditActions(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	ctx, base := t.Context(), "/dashboard/projects/"+w.one.ID
	email, secret := "ada@example.com", good
	s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &email, Password: &secret})
	must(t, err)

	one := base + "/subscribers/" + s.ID
	for _, step := range []struct{ action, done string }{
		{action: "disable", done: "disabled"},
		{action: "enable", done: "enabled"},
		{action: "revoke", done: "signedout"},
	} {
		b.post(one, one+"/"+step.action, nil).leadsTo(t, one+"?done="+step.done)
	}
	edit := url.Values{"email": {email}, "password": {"another loom of one's own"}}
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")

	moved, no := "moved@example.com", false
	_, err = w.fabric.Subscribers.Update(ctx, w.one.ID, s.ID, fabric.SubscriberInput{Email: &moved, Disabled: &no})
	must(t, err)
	events, err := w.rows.ListAudit(ctx, audit.Filter{ProjectID: w.one.ID}, firstPage)
	must(t, err)
	last := events.Items[0]
	if last.Action != "subscriber.updated" {
		t.Errorf("an update of only the email is recorded as %s, want subscriber.updated", last.Action)
	}
	if changed := last.Detail["changed"]; changed != "email" {
		t.Errorf("an update of only the email is recorded as a change of %q, want email", changed)
	}

	b.get(base+"/audit").wantText(t,
		"Subscriber disabled <", "Subscriber enabled <", "Signed out everywhere <",
		"Subscriber password changed <", ">session.ended_all<")
}

// TestAuditReaders shows that viewers see the actor of an event without a link, and that the audit
// page of the installation finds an operator's events by email.
func TestAuditReaders(t *testing.T) {
	w := newWorld(t)
	ann, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	base, email := "/dashboard/projects/"+w.one.ID, "ada@example.com"
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	one := base + "/subscribers/" + s.ID
	b.post(one, one+"/disable", nil).leadsTo(t, one+"?done=disabled")

	viewer.get(base+"/audit").wantText(t,
		`<bdi title="`+ann.ID+`">ann@example.com</bdi> <span class="quiet">Operator</span>`)

	ofViewer := b.get("/dashboard/audit?account=viewer@example.com")
	ofViewer.wantText(t, "Signed in <")
	ofViewer.wantNoText(t, ann.ID)
	b.get("/dashboard/audit?account=nobody@example.com").wantText(t, "No events found")
	b.get("/dashboard/audit?action=subscriber").wantText(t, "in <bdi>One</bdi>")
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
		b.get(at+query).wantText(t, want)
	}
}

// TestAudit shows that the audit trail of the installation explains operators' failed logins, and
// that the audit trail of a project links to the operators who changed something.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", ofAll)
	w.browser().post("/dashboard/login", "/dashboard/login",
		url.Values{"username": {"ann@example.com"}, "password": {"wrong"}})

	// Earlier versions recorded a refused login with this reason.
	earlier := audit.Of("login", "", "operator", o.ID).Refuse("wrong e-mail or password")
	must(t, w.rows.Record(t.Context(), earlier))

	refused := b.get("/dashboard/audit?action=login&outcome=refused")
	if n := strings.Count(refused.body, "An owner can create a link for a new password"); n != 2 {
		t.Errorf("the audit trail explains %d refused logins, want 2: %s", n, refused.body)
	}
	refused.wantText(t, "Sign-in refused", "wrong email or password", o.ID)
	refused.wantNoText(t, "Done</span>")

	base := "/dashboard/projects/" + w.one.ID
	b.post(base+"/keys/new", base+"/keys", url.Values{"name": {"back"}, "scope": {"Voice"}})
	b.get(base+"/audit").wantText(t, `<a href="/dashboard/operators/`+o.ID+`" title="`+o.ID+`">`+
		`<bdi>ann@example.com</bdi></a> <span class="quiet">Operator</span>`)
	b.get(base + "/audit?after=soon").wantRefused(t)
}
