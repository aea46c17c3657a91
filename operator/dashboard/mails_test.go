package dashboard_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/operator/dashboard"
)

// mailing returns two emails, one of which was given up. Emails can be sent only to example.com.
// The recipients of test emails and the ids of retried emails are recorded in w.
func (w *world) mailing() *dashboard.Mailing {
	return &dashboard.Mailing{
		State: func(context.Context) (dashboard.MailState, error) {
			return dashboard.MailState{From: "selvage@example.com"}, nil
		},
		List: func(_ context.Context, state string, _ page.Query) (p page.Page[dashboard.Letter], err error) {
			for _, l := range []dashboard.Letter{
				{ID: "one", Kind: "reset_password", To: "<b>x@example.com", State: "dead", Error: "550 no"},
				{ID: "two", Kind: "invitation", To: "ada@example.com", State: "sent"},
			} {
				if state == "" || state == l.State {
					p.Items = append(p.Items, l)
				}
			}
			return p, nil
		},

		Retry: func(_ context.Context, id string) error {
			if id != "one" {
				return problem.NoSuch("mail")
			}
			w.mailed = append(w.mailed, id)
			return nil
		},
		Test: func(_ context.Context, to string) error {
			if !strings.HasSuffix(to, "@example.com") {
				return errors.New("550 <i>no</i>")
			}
			w.mailed = append(w.mailed, to)
			return nil
		},
	}
}

// TestMailPages shows that owners can see the emails, send them again, and, after they confirm
// their identity, send test emails.
func TestMailPages(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	const at = "/dashboard/mails"

	a := b.get(at)
	for _, want := range []string{"Mails are sent through the server in mail.url.", "selvage@example.com",
		"&lt;b&gt;x@example.com", "550 no", `status bad">Given up`,
		"Invitation"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the mails returned %s, want %s in it", a.Status, want)
		}
	}

	if strings.Contains(a.body, at+"/two/retry") {
		t.Error("a mail that was sent can be sent again")
	}
	if a := b.get(at + "?state=sent"); strings.Contains(a.body, "550 no") ||
		!strings.Contains(a.body, "ada@example.com") {
		t.Errorf("the mails that were sent returned %s, want only the one that was sent", a.Status)
	}

	b.post(at, at+"/one/retry", nil).leadsTo(t, at+"?done=mailretried")
	if a := b.post(at, at+"/two/retry", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("sending an unknown mail again returned %s, want 404", a.Status)
	}

	if a := b.get("/dashboard/projects/" + w.one.ID); !strings.Contains(a.body, at+"?state=dead") {
		t.Error("the home page does not lead to the mail that was given up")
	}

	// A test email is sent, or the page shows why it could not be.
	b.post(at, at+"/test", url.Values{"to": {"Ada@example.com"}}).leadsTo(t, at+"?done=mailed")
	for to, want := range map[string]string{"ada@example.org": "550 &lt;i&gt;no", "nobody": "not an email address"} {
		a := b.post(at, at+"/test", url.Values{"to": {to}})
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) ||
			!strings.Contains(a.body, `value="`+to+`"`) {
			t.Errorf("a test email to %s returned %s, want 422 with the reason", to, a.Status)
		}
	}

	w.pass(operator.Freshness)
	b.post(at, at+"/test", url.Values{"to": {"ada@example.com"}}).asksToConfirm(t, at)
	if want := []string{"one", "ada@example.com"}; !slices.Equal(w.mailed, want) {
		t.Errorf("sent were %v, want %v", w.mailed, want)
	}
}

// TestOwnName shows that operators can change their own name, and that the form keeps an invalid
// name.
func TestOwnName(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	const at = "/dashboard/account"
	b.post(at, at+"/name", url.Values{"name": {" Ann Loom "}}).leadsTo(t, at+"?done=named")
	now, err := w.operators.Find(context.Background(), o.ID)
	must(t, err)
	if now.Name != "Ann Loom" || !strings.Contains(b.get(at).body, `value="Ann Loom"`) {
		t.Errorf("the name is %q, want Ann Loom", now.Name)
	}
	long := strings.Repeat("x", 300)
	if a := b.post(at, at+"/name", url.Values{"name": {long}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `value="`+long) {
		t.Errorf("a name of 300 characters returned %s, want 422 with the name", a.Status)
	}
}
