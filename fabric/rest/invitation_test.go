package rest_test

import (
	"net/http"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// TestWithdrawInvitation shows that only a manager of the project can withdraw an invitation, and
// only while it is pending.
func TestWithdrawInvitation(t *testing.T) {
	w := newWorld(t)
	id := w.create(`{"email":"alan@example.com"}`).ID
	path := subscribers + "/" + id + "/invitation"
	boss := w.manager()
	third, secret, _ := w.newProject("three", fabric.Management)
	find := func() error {
		_, err := w.fabric.Subscribers.FindInvitation(t.Context(), w.project.ID, id)
		return err
	}

	r := w.call(boss, "DELETE", path, "")
	r.wantStatus(t, "DELETE before the invitation", http.StatusNotFound)
	r = w.call(boss, "POST", path, "")
	r.wantStatus(t, "POST", http.StatusAccepted)
	r = w.call(w.basic(), "DELETE", path, "")
	r.wantStatus(t, "DELETE by a key without Management", http.StatusUnauthorized)
	r = w.call(basicAuth(third.ID, secret), "DELETE", path, "")
	r.wantStatus(t, "DELETE by another project", http.StatusNotFound)
	if err := find(); err != nil {
		t.Fatalf("after the refused requests: %v, want the invitation to be pending", err)
	}

	r = w.call(boss, "DELETE", path, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	if err := find(); err == nil {
		t.Error("after DELETE, the invitation is still pending")
	}
	r = w.call(boss, "DELETE", path, "")
	r.wantStatus(t, "DELETE again", http.StatusNotFound)
}
