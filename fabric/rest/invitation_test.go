package rest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// TestWithdrawInvitation shows that only a manager of the project can withdraw an invitation, and
// only while it is pending.
func TestWithdrawInvitation(t *testing.T) {
	w := newWorld(t)
	created := w.call(w.basic(), "POST", subscribers, `{"email":"alan@example.com"}`)
	id := as[struct{ ID string }](t, created).ID
	path := subscribers + "/" + id + "/invitation"
	_, weak := w.newKey(time.Time{}, fabric.Voice)
	boss := w.manager()
	_, secret, err := w.fabric.APIKeys.Create(t.Context(), w.other.ID,
		fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Management}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := func(r *http.Request) { r.SetBasicAuth(w.other.ID, secret) }

	withdraw := func(who string, auth authorization, want int) {
		t.Helper()
		if r := w.call(auth, "DELETE", path, ""); r.status != want {
			t.Errorf("withdrawn by %s: %d %s, want %d", who, r.status, r.text, want)
		}
	}
	pending := func() bool {
		_, err := w.fabric.Subscribers.FindInvitation(t.Context(), w.project.ID, id)
		return err == nil
	}

	withdraw("a manager, before it exists", boss, http.StatusNotFound)
	if r := w.call(boss, "POST", path, ""); r.status != http.StatusAccepted {
		t.Fatalf("inviting: %d %s, want 202", r.status, r.text)
	}
	withdraw("a key without Management", weak, http.StatusUnauthorized)
	withdraw("another project", other, http.StatusNotFound)
	if !pending() {
		t.Fatal("others have withdrawn the invitation")
	}

	withdraw("a manager", boss, http.StatusNoContent)
	if pending() {
		t.Error("the invitation is still pending")
	}
	withdraw("a manager, again", boss, http.StatusNotFound)
}
