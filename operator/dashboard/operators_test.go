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

// inviteBob invites bob and returns the token of the invitation.
func inviteBob(w *world, b browser) string {
	b.Helper()
	form := url.Values{"email": {"bob@example.com"}, "role": {"viewer"}, "project": {w.one.ID}}
	return b.post(inviteForm, inviteForm, form).find(b, invitedLink)
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
	var trail []string
	for _, e := range events.Items {
		trail = append(trail, e.Action+" "+e.Detail["email"])
		if e.Actor.Kind != audit.Operator {
			w.Errorf("the actor of %s is %+v, want an operator", e.Action, e.Actor)
		}
	}
	if got := strings.Join(trail, ", "); got != want {
		w.Errorf("the trail has %s, want %s", got, want)
	}
}

// TestInvitations shows that an invitation is listed, and that a new link replaces the previous one.
func TestInvitations(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)

	// Unless the owner chooses otherwise, the form invites a viewer of one project.
	form := b.get(inviteForm)
	form.wantText(t, `value="viewer" checked`, "no mail is sent")
	form.wantNoText(t, `value="" selected`)
	b.get(operatorList).wantNoText(t, `id="invitations"`)

	first := inviteBob(w, b)
	list := b.get(operatorList)
	list.wantText(t, "bob@example.com", "viewer in <bdi>One</bdi>", "ann@example.com", "Pending")

	id := list.find(t, `/operators/invitations/([0-9a-f-]+)/renew`)
	second := b.post(operatorList, operatorList+"/invitations/"+id+"/renew", nil).find(t, invitedLink)
	if accepts(w, first) {
		t.Error("after a renewal, the first link is accepted")
	}
	if !accepts(w, second) {
		t.Error("after a renewal, the new link is not accepted")
	}
	wantLinkTrail(w, "operator_link.created bob@example.com, operator_link.created bob@example.com")
}

// TestWithdrawInvitation shows that a withdrawn invitation disappears from the list and its link
// stops working. Only an owner can withdraw an invitation, and the audit trail records this.
func TestWithdrawInvitation(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	token := inviteBob(w, b)
	id := b.get(operatorList).find(t, `/operators/invitations/([0-9a-f-]+)/withdraw`)
	withdraw := operatorList + "/invitations/" + id + "/withdraw"

	_, admin := w.operator("admin@example.com", operator.Membership{Role: operator.Admin})
	byAdmin := url.Values{"form": {admin.token("/dashboard/account")}}
	admin.send(admin.request("POST", withdraw, byAdmin)).wantStatus(t, http.StatusForbidden)
	if !accepts(w, token) {
		t.Error("after an admin tried to withdraw an invitation, it is not accepted")
	}

	b.post(operatorList, withdraw, nil).leadsTo(t, operatorList+"?done=withdrawn")
	if accepts(w, token) {
		t.Error("a withdrawn invitation is accepted")
	}
	list := b.get(operatorList + "?done=withdrawn")
	list.wantText(t, "Invitation withdrawn")
	list.wantNoText(t, "bob@example.com")
	b.post(operatorList, withdraw, nil).wantStatus(t, http.StatusNotFound)
	wantLinkTrail(w, "operator_link.withdrawn bob@example.com, operator_link.created bob@example.com")
}

// TestInvitationsAreAllListed shows that an invitation is listed no matter how many newer ones
// exist.
func TestInvitationsAreAllListed(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	viewer := operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID}
	oldest, _, err := w.operators.Invite(t.Context(), "hidden@example.com", viewer, "")
	must(t, err)
	for i := range page.MaxSize {
		_, _, err := w.operators.Invite(t.Context(), fmt.Sprintf("bob%d@example.com", i), viewer, "")
		must(t, err)
	}
	b.get("/dashboard/operators").wantText(t, oldest.ID+"/withdraw")
}
