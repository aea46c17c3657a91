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

// mailing returns a Mailing with two emails, one of which is no longer retried. Emails can be sent
// only to example.com. The recipients of test emails and the ids of retried emails are recorded in
// w.mailed.
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

// TestMailPages shows that owners can see the emails, retry those that failed, and, after they confirm
// their identity, send test emails.
func TestMailPages(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	const at = "/dashboard/mails"

	all := b.get(at)
	all.wantText(t, "Mails are sent through the server in mail.url.", "selvage@example.com",
		"&lt;b&gt;x@example.com", "550 no", `status bad">Given up`, "Invitation")
	all.wantNoText(t, at+"/two/retry") // it was sent
	sent := b.get(at + "?state=sent")
	sent.wantText(t, "ada@example.com")
	sent.wantNoText(t, "550 no")

	b.post(at, at+"/one/retry", nil).leadsTo(t, at+"?done=mailretried")
	b.post(at, at+"/two/retry", nil).wantStatus(t, http.StatusNotFound)
	b.get("/dashboard/projects/"+w.one.ID).wantText(t, at+"?state=dead")

	// A test email is sent, or the page shows why it could not be sent.
	b.post(at, at+"/test", url.Values{"to": {"Ada@example.com"}}).leadsTo(t, at+"?done=mailed")
	for to, reason := range map[string]string{"ada@example.org": "550 &lt;i&gt;no", "nobody": "not an email address"} {
		b.post(at, at+"/test", url.Values{"to": {to}}).wantRefused(t, reason, `value="`+to+`"`)
	}

	w.pass(operator.Freshness)
	b.post(at, at+"/test", url.Values{"to": {"ada@example.com"}}).asksToConfirm(t, at)
	if want := []string{"one", "ada@example.com"}; !slices.Equal(w.mailed, want) {
		t.Errorf("the recorded recipients and ids are %v, want %v", w.mailed, want)
	}
}

// TestOwnName shows that operators can change their own name, and that the form keeps an invalid
// name.
func TestOwnName(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	const at = "/dashboard/account"
	b.post(at, at+"/name", url.Values{"name": {" Ann Loom "}}).leadsTo(t, at+"?done=named")
	named, err := w.operators.Find(t.Context(), o.ID)
	must(t, err)
	if named.Name != "Ann Loom" {
		t.Errorf("the name is %q, want Ann Loom", named.Name)
	}
	b.get(at).wantText(t, `value="Ann Loom"`)

	tooLong := strings.Repeat("x", 300)
	b.post(at, at+"/name", url.Values{"name": {tooLong}}).wantRefused(t, `value="`+tooLong)
}
