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
// reports an error if an email contains a link or does not come from selvage.
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
		draft, err := w.idp.Letters.Write(w.Context(), l)
		must(w, err)
		if draft.Link != "" {
			w.Errorf("the email %s has the link %q, want none", l.Kind, draft.Link)
		}
		if !strings.HasPrefix(draft.Brand.Name, "selvage at ") {
			w.Errorf("the email %s is from %q, want selvage", l.Kind, draft.Brand.Name)
		}
		kinds, drafts = append(kinds, l.Kind), append(drafts, draft)
	}
	return kinds, drafts
}

// TestOperatorsAreNotified shows that operators get emails about changes that affect access to their
// accounts, and that owners get emails about new operators.
func TestOperatorsAreNotified(t *testing.T) {
	w := newWorld(t)
	seen := make(map[string]bool)
	// wantMail checks the kinds of the new emails to an operator, and returns the emails.
	wantMail := func(event, email string, want ...mail.Kind) []mail.Draft {
		t.Helper()
		got, drafts := w.newMail(email, seen)
		if !slices.Equal(got, want) {
			t.Errorf("after %s, %s receives %v, want %v", event, email, got, want)
		}
		return drafts
	}

	// Signing in from a new place sends an email.
	const anns, bobs = "ann@example.com", "bob@example.com"
	ann, a := w.operator(anns, ofAll)
	signedIn := wantMail("a first sign-in", anns, mail.OperatorDevice)
	wantFacts(t, signedIn, map[string]string{"address": "127.0.0.1", "by": ""})
	for _, draft := range signedIn {
		if draft.Facts["when"] == "" {
			t.Errorf("the email does not say when the operator signed in: %v", draft.Facts)
		}
	}
	w.browser().signIn(anns)
	wantMail("another sign-in from there", anns)

	// Owners are notified of new operators. Operators are notified of the factors that they set up.
	bob, b := w.operator(bobs, operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	added := wantMail("the creation of an operator", anns, mail.OperatorAdded)
	wantFacts(t, added, map[string]string{"new": bobs, "role": "admin"})
	wantMail("the new operator's first sign-in", bobs, mail.OperatorDevice)
	b.passkey()
	wantMail("the set-up of a passkey", bobs, mail.OperatorFactor)

	// The operator is also notified of a link created by another operator, and of a password set
	// with it.
	page := "/dashboard/operators/" + bob.ID
	link := a.post(page, page+"/link", nil).find(t, `id="link"><span class="copy"><code>([^<]+)<`)
	linked := wantMail("the creation of a link", bobs, mail.OperatorLink)
	wantFacts(t, linked, map[string]string{"maker": anns})
	at, err := url.Parse(link)
	must(t, err)
	token := at.Query().Get("token")
	w.browser().post("/dashboard/setup?token="+token, "/dashboard/setup",
		url.Values{"token": {token}, "password": {good + " two"}}).leadsTo(t, "/dashboard/factor")
	wantMail("a new password set with the link", bobs, mail.OperatorPassword)

	a.post("/dashboard/account", "/dashboard/account/password",
		url.Values{"current": {good}, "password": {good + " three"}}).leadsTo(t, "/dashboard/account?done=password")
	wantMail("a change of the password by the operator", anns, mail.OperatorPassword)
	wantMail("nothing", bobs)

	// Sign-ins from new places with the right password send one email an hour. A disabled operator
	// gets none.
	needsFactor := func(operator.Operator) (bool, error) { return true, nil }
	for range 3 {
		_, _, err := w.operators.SignIn(t.Context(), anns, good+" three",
			operator.Visitor{Network: "203.0.113.9"}, needsFactor)
		must(t, err)
	}
	wantMail("sign-ins from elsewhere", anns, mail.OperatorDevice)

	disabled := true
	_, err = w.operators.Update(t.Context(), bob.ID, operator.Input{Disabled: &disabled}, "")
	must(t, err)
	_, _, err = w.operators.Recover(t.Context(), bob.ID, ann.Email)
	must(t, err)
	wantMail("a recovery link for a disabled operator", bobs)
}

// wantFacts fails the test unless each email contains these facts.
func wantFacts(t *testing.T, drafts []mail.Draft, want map[string]string) {
	t.Helper()
	for _, draft := range drafts {
		for name, value := range want {
			if got := draft.Facts[name]; got != value {
				t.Errorf("the fact %s in the email is %q, want %q", name, got, value)
			}
		}
	}
}
