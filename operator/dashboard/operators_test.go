package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// TestInvitations shows that an invitation is listed until its link is used. A new link ends
// the previous one, and a withdrawn link no longer works.
func TestInvitations(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	const list, invite = "/dashboard/operators", "/dashboard/operators/invite"

	if a := b.get(invite); !strings.Contains(a.body, `value="viewer" checked`) ||
		strings.Contains(a.body, `value="" selected`) || !strings.Contains(a.body, "no mail is sent") {
		t.Errorf("the form does not start with the narrowest role in one project, or does not explain it: %s", a.body)
	}

	if a := b.get(list); strings.Contains(a.body, `id="invitations"`) {
		t.Error("invitations are shown without any")
	}

	made := b.post(invite, invite, url.Values{"email": {"bob@example.com"}, "role": {"viewer"},
		"project": {w.one.ID}})
	const link = `id="link">[^?]*\?token=([a-z2-7]+)`
	first := made.find(t, link)
	a := b.get(list)
	for _, want := range []string{"bob@example.com", "viewer in <bdi>One</bdi>", "ann@example.com", "Pending"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the list of invitations has no %q: %s", want, a.body)
		}
	}

	// A new link ends the first.
	id := a.find(t, `/operators/invitations/([0-9a-f-]+)/renew`)
	good := func(token string) bool {
		return w.browser().get("/dashboard/setup?token="+token).StatusCode == http.StatusOK
	}
	second := b.post(list, list+"/invitations/"+id+"/renew", nil).find(t, link)
	if good(first) || !good(second) {
		t.Errorf("after a renewal the first link is good: %v, the second: %v, want the second alone",
			good(first), good(second))
	}

	// A withdrawn link is invalid, and its invitation is gone.
	id = b.get(list).find(t, `/operators/invitations/([0-9a-f-]+)/withdraw`)
	b.post(list, list+"/invitations/"+id+"/withdraw", nil).leadsTo(t, list+"?done=withdrawn")
	if good(second) {
		t.Error("a withdrawn invitation is accepted")
	}

	if a := b.get(list + "?done=withdrawn"); strings.Contains(a.body, "bob@example.com") ||
		!strings.Contains(a.body, "Invitation withdrawn") {
		t.Errorf("after the withdrawal: %s", a.body)
	}
	if a := b.post(list, list+"/invitations/"+id+"/withdraw", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("withdrawing again: %s, want 404", a.Status)
	}

	// Each step is in the audit trail, as done by the operator.
	events, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "operator_link"}, firstPage)
	must(t, err)
	var said []string
	for _, e := range events.Items {
		said = append(said, e.Action+" "+e.Detail["email"])
		if e.Actor.Kind != audit.Operator {
			t.Errorf("%s was done by %+v, want the operator", e.Action, e.Actor)
		}
	}

	want := "operator_link.withdrawn bob@example.com, operator_link.created bob@example.com, " +
		"operator_link.created bob@example.com"
	if strings.Join(said, ", ") != want {
		t.Errorf("the trail has %v, want %v", said, want)
	}

	// Admins cannot withdraw invitations.
	other := operator.Membership{Role: operator.Admin}
	_, admin := w.operator("admin@example.com", other)
	if a := admin.send(admin.request("POST", list+"/invitations/"+id+"/withdraw",
		url.Values{"form": {admin.token("/dashboard/account")}})); a.StatusCode != http.StatusForbidden {
		t.Errorf("withdrawing by an admin: %s, want 403", a.Status)
	}
}

// TestInvitationsAreAllListed shows that an invitation is listed, however many newer ones exist.
func TestInvitationsAreAllListed(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	hidden, _, err := w.operators.Invite(t.Context(), "hidden@example.com",
		operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID}, "")
	must(t, err)

	for i := range page.MaxSize {
		_, _, err := w.operators.Invite(t.Context(), fmt.Sprintf("bob%d@example.com", i),
			operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID}, "")
		must(t, err)
	}

	if a := b.get("/dashboard/operators"); !strings.Contains(a.body, hidden.ID+"/withdraw") {
		t.Error("the list lacks an invitation that is older than many others")
	}
}
