package dashboard_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/operator"
)

// newMail returns the emails that an operator has received since the last call, oldest first. It
// fails the test if a message contains a link.
func (w *world) newMail(email string, seen map[string]bool) (kinds []mail.Kind, drafts []mail.Draft) {
	w.Helper()
	found, err := w.rows.ListLetters(w.Context(), "", firstPage)
	must(w, err)
	slices.Reverse(found.Items)

	for _, l := range found.Items {
		if seen[l.ID] || l.To != email {
			continue
		}
		seen[l.ID] = true
		d, err := w.idp.Letters.Write(w.Context(), l)
		must(w, err)

		if d.Link != "" || !strings.HasPrefix(d.Brand.Name, "selvage at ") {
			w.Errorf("the mail %s has the link %q and is from %q", l.Kind, d.Link, d.Brand.Name)
		}
		kinds, drafts = append(kinds, l.Kind), append(drafts, d)
	}
	return kinds, drafts
}

// TestOperatorsAreNotified shows that operators get emails about changes to the access to their
// accounts, and that owners get emails about new owners.
func TestOperatorsAreNotified(t *testing.T) {
	w := newWorld(t)
	seen := make(map[string]bool)
	want := func(what, email string, kinds ...mail.Kind) []mail.Draft {
		t.Helper()
		got, drafts := w.newMail(email, seen)
		if !slices.Equal(got, kinds) {
			t.Errorf("%s: %s receives %v, want %v", what, email, got, kinds)
		}
		return drafts
	}

	// Signing in from a new place sends an email.
	const anns, bobs = "ann@example.com", "bob@example.com"
	ann, a := w.operator(anns, ofAll)
	for _, d := range want("a first sign-in", anns, mail.OperatorDevice) {
		if d.Facts["address"] != "127.0.0.1" || d.Facts["when"] == "" || d.Facts["by"] != "" {
			t.Errorf("the facts are %v", d.Facts)
		}
	}
	w.browser().signIn(anns)
	want("another sign-in from there", anns)

	// Owners are notified of a new operator, and operators of the factors they set up.
	bob, b := w.operator(bobs, operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	for _, d := range want("a new operator", anns, mail.OperatorAdded) {
		if d.Facts["new"] != bobs || d.Facts["role"] != "admin" {
			t.Errorf("the facts are %v", d.Facts)
		}
	}
	want("the new operator's first sign-in", bobs, mail.OperatorDevice)
	b.passkey()
	want("a passkey", bobs, mail.OperatorFactor)

	// The operator is also notified of a link created by another operator, and of a password set
	// with it.
	page := "/dashboard/operators/" + bob.ID
	link := a.post(page, page+"/link", nil).find(t, `id="link"><span class="copy"><code>([^<]+)<`)
	for _, d := range want("a link", bobs, mail.OperatorLink) {
		if d.Facts["maker"] != anns {
			t.Errorf("the facts are %v", d.Facts)
		}
	}
	at, err := url.Parse(link)
	must(t, err)
	token := at.Query().Get("token")
	w.browser().post("/dashboard/setup?token="+token, "/dashboard/setup",
		url.Values{"token": {token}, "password": {good + " two"}}).leadsTo(t, "/dashboard/factor")
	want("a password set with the link", bobs, mail.OperatorPassword)

	a.post("/dashboard/account", "/dashboard/account/password",
		url.Values{"current": {good}, "password": {good + " three"}}).leadsTo(t, "/dashboard/account?done=password")
	want("a password that the operator changed", anns, mail.OperatorPassword)
	want("nothing", bobs)

	// Sign-ins from new places with the right password send one email an hour. A disabled operator
	// gets none.
	off := true

	for range 3 {
		_, _, err := w.operators.SignIn(t.Context(), anns, good+" three",
			operator.Visitor{Network: "203.0.113.9"}, func(operator.Operator) (bool, error) { return true, nil })
		must(t, err)
	}
	want("sign-ins from elsewhere", anns, mail.OperatorDevice)
	_, err = w.operators.Update(t.Context(), bob.ID, operator.Input{Disabled: &off}, "")
	must(t, err)
	_, _, err = w.operators.Recover(t.Context(), bob.ID, ann.Email)
	must(t, err)
	want("a recovery link for a disabled operator", bobs)
}
