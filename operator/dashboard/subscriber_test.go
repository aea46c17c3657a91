package dashboard_test

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// TestSubscribers shows that a subscriber is created, changed, unlocked, exported and erased.
// The form shows errors at their fields.
func TestSubscribers(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base, ctx := "/dashboard/projects/"+w.one.ID+"/subscribers", context.Background()

	if a := b.post(base+"/new", base, url.Values{"email": {"nobody"}, "first_name": {"Ada"},
		"password": {"short"}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-email-fault"`) ||
		!strings.Contains(a.body, `id="f-password-fault"`) || !strings.Contains(a.body, `value="Ada"`) ||
		strings.Contains(a.body, "short\"") {
		t.Errorf("an invalid subscriber: %s %s", a.Status, between(a.body, "<form id", "</form>"))
	}

	made := b.post(base+"/new", base, url.Values{"email": {"Ada@Example.com"}, "first_name": {"Ada"},
		"password": {good}})
	one, ok := strings.CutSuffix(made.Header.Get("Location"), "?done=subscriberadded")
	if !ok {
		t.Fatalf("creating a subscriber: %s %s", made.Status, made.body)
	}
	id := one[strings.LastIndex(one, "/")+1:]

	b.post(one+"/edit", one+"/edit", url.Values{"email": {"ada@example.com"}, "first_name": {"Ada"},
		"last_name": {"Lovelace"}, "country": {"GB"}}).leadsTo(t, one+"?done=changed")
	s, err := w.fabric.Subscribers.Find(ctx, w.one.ID, id)
	if err != nil || s.LastName != "Lovelace" || s.Country != "GB" || s.FirstName != "Ada" || s.PasswordHash == "" {
		t.Errorf("after the change the subscriber is %+v, %v", s, err)
	}

	// A reference with quotes is escaped in the commands to copy.
	tokens, err := w.fabric.Tokens.IssueSubscriber(
		ctx, fabric.Issuer{ProjectID: w.one.ID}, fabric.SubscriberTokenInput{Reference: "x'; id #"})
	must(t, err)
	if a := b.get(base + "/" + tokens.SubscriberID); !strings.Contains(
		a.body, template.HTMLEscapeString(`--reference='x'\''; id #'`)) ||
		!strings.Contains(a.body, template.HTMLEscapeString(`-d '{"reference":"x'\''; id #"}'`)) {
		t.Errorf("a command to copy runs more than it shows: %s", a.body)
	}

	// An email must be unique, and a subscriber with a password is not invited.
	mail := "bob@example.com"
	_, err = w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)
	if a := b.post(one+"/edit", one+"/edit",
		url.Values{"email": {mail}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-email-fault"`) {
		t.Errorf("an e-mail that is taken: %s", a.Status)
	}

	if a := b.post(one, one+"/invite", nil); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "subscribers with a password are not invited") {
		t.Errorf("inviting a subscriber with a password: %s", a.Status)
	}

	// Wrong passwords lock the account until an operator unlocks it.
	for range 6 {
		if _, err = w.idp.Logins.LogIn(ctx, w.one.ID, s.Email, "wrong", idp.Visitor{}); err == nil {
			t.Fatal("a wrong password is accepted")
		}
	}
	if _, err = w.idp.Logins.LogIn(ctx, w.one.ID, s.Email, good, idp.Visitor{}); !errors.Is(err, problem.RateLimited) {
		t.Errorf("the right password after many wrong ones: %v", err)
	}

	b.post(one, one+"/unlock", nil).leadsTo(t, one+"?done=unlocked")
	if _, err = w.idp.Logins.LogIn(ctx, w.one.ID, s.Email, good,
		idp.Visitor{UserAgent: "Firefox/1 Linux"}); err != nil {
		t.Errorf("after unlocking: %v", err)
	}

	// The page shows its logins and factors, and everything is exported.
	if a := b.get(one); !strings.Contains(a.body, "Firefox on Linux") ||
		!strings.Contains(a.body, "/tokens/make/subscriber?reference=ada%40example.com") ||
		!strings.Contains(a.body, "None. They sign in with their password alone") {
		t.Errorf("the subscriber's page: %s", a.Status)
	}

	if a := b.get(one + "/export"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Lovelace") ||
		!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") ||
		a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the export: %s %v", a.Status, a.Header)
	}

	// Erasing needs the email and a recent confirmation.
	if a := b.post(one, one+"/erase", url.Values{"confirm": {"ada"}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("erasing with a wrong name: %s", a.Status)
	}

	w.pass(operator.Freshness)
	b.post(one, one+"/erase", url.Values{"confirm": {"ada@example.com"}}).leadsTo(
		t, "/dashboard/confirm?next="+url.QueryEscape(one))
	b.post("/dashboard/confirm", "/dashboard/confirm", url.Values{"password": {good}, "next": {one}}).leadsTo(t, one)
	b.post(one, one+"/erase", url.Values{"confirm": {"ada@example.com"}}).leadsTo(t, base+"?done=erased")

	if a := b.get(one); a.StatusCode != http.StatusNotFound {
		t.Errorf("the page of an erased subscriber: %s", a.Status)
	}
}
