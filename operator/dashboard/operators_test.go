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

const (
	operatorList = "/dashboard/operators"
	inviteForm   = operatorList + "/invite"
	invitedLink  = `id="link">[^?]*\?token=([a-z2-7]+)` // in a page
)

// invited invites bob and returns the token of the invitation.
func invited(w *world, b browser) string {
	b.Helper()
	return b.post(inviteForm, inviteForm, url.Values{"email": {"bob@example.com"}, "role": {"viewer"},
		"project": {w.one.ID}}).find(b.TB, invitedLink)
}

// accepts reports whether the invitation link with this token works.
func accepts(w *world, token string) bool {
	return w.browser().get("/dashboard/setup?token="+token).StatusCode == http.StatusOK
}

// wantLinkTrail fails the test unless the audit trail has exactly these events about links, newest
// first.
func wantLinkTrail(w *world, want string) {
	w.Helper()
	events, err := w.rows.ListAudit(w.Context(), audit.Filter{Action: "operator_link"}, firstPage)
	must(w, err)
	var said []string
	for _, e := range events.Items {
		said = append(said, e.Action+" "+e.Detail["email"])
		if e.Actor.Kind != audit.Operator {
			w.Errorf("%s was done by %+v, want the operator", e.Action, e.Actor)
		}
	}
	if strings.Join(said, ", ") != want {
		w.Errorf("the trail has %v, want %v", said, want)
	}
}

// TestInvitations shows that an invitation is listed until its link is used, and that a new link
// replaces the previous one.
func TestInvitations(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	if a := b.get(inviteForm); !strings.Contains(a.body, `value="viewer" checked`) ||
		strings.Contains(a.body, `value="" selected`) || !strings.Contains(a.body, "no mail is sent") {
		t.Errorf("the form does not start with the narrowest role in one project, or does not explain it: %s", a.body)
	}

	if a := b.get(operatorList); strings.Contains(a.body, `id="invitations"`) {
		t.Error("a section for invitations is shown although there are none")
	}

	first := invited(w, b)
	a := b.get(operatorList)
	for _, want := range []string{"bob@example.com", "viewer in <bdi>One</bdi>", "ann@example.com", "Pending"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the list of invitations has no %q: %s", want, a.body)
		}
	}

	id := a.find(t, `/operators/invitations/([0-9a-f-]+)/renew`)
	second := b.post(operatorList, operatorList+"/invitations/"+id+"/renew", nil).find(t, invitedLink)
	if accepts(w, first) || !accepts(w, second) {
		t.Errorf("after a renewal the first link is good: %v, the second: %v, want the second alone",
			accepts(w, first), accepts(w, second))
	}
	wantLinkTrail(w, "operator_link.created bob@example.com, operator_link.created bob@example.com")
}

// TestWithdrawInvitation shows that a withdrawn invitation disappears from the list and its link
// stops working. Only an owner can withdraw an invitation, and the audit trail names that owner.
func TestWithdrawInvitation(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	token := invited(w, b)
	id := b.get(operatorList).find(t, `/operators/invitations/([0-9a-f-]+)/withdraw`)
	withdraw := operatorList + "/invitations/" + id + "/withdraw"

	_, admin := w.operator("admin@example.com", operator.Membership{Role: operator.Admin})
	if a := admin.send(admin.request("POST", withdraw,
		url.Values{"form": {admin.token("/dashboard/account")}})); a.StatusCode != http.StatusForbidden ||
		!accepts(w, token) {
		t.Errorf("withdrawing by an admin: %s, want 403", a.Status)
	}

	b.post(operatorList, withdraw, nil).leadsTo(t, operatorList+"?done=withdrawn")
	if accepts(w, token) {
		t.Error("a withdrawn invitation is accepted")
	}
	if a := b.get(operatorList + "?done=withdrawn"); strings.Contains(a.body, "bob@example.com") ||
		!strings.Contains(a.body, "Invitation withdrawn") {
		t.Errorf("after the withdrawal: %s", a.body)
	}
	if a := b.post(operatorList, withdraw, nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("withdrawing again: %s, want 404", a.Status)
	}

	wantLinkTrail(w, "operator_link.withdrawn bob@example.com, operator_link.created bob@example.com")
}

// TestInvitationsAreAllListed shows that an invitation is listed no matter how many newer ones
// exist.
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
