package dashboard_test

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// eve creates the subscriber eve@example.com without a password, and returns the path of her page.
func (w *world) eve(t *testing.T, b browser) (page string) {
	t.Helper()
	base := "/dashboard/projects/" + w.one.ID + "/subscribers"
	created := b.post(base+"/new", base, url.Values{"email": {"eve@example.com"}})
	page, ok := strings.CutSuffix(created.Header.Get("Location"), "?done=subscriberadded")
	if !ok {
		t.Fatalf("%s, want a redirect to the new subscriber\n%s", created, created.body)
	}
	return page
}

// handOver returns the token of a new invitation link to hand over.
func handOver(t *testing.T, b browser, one string) string {
	t.Helper()
	link := b.post(one, one+"/invite/link", nil).find(t, `<p id="link"><span[^>]*><code>(.*?)</code>`)
	parsed, err := url.Parse(link)
	must(t, err)
	if parsed.Path != "/invite" {
		t.Fatalf("the new link is %q, want the path /invite", link)
	}
	token := parsed.Query().Get("token")
	if token == "" {
		t.Fatalf("the new link is %q, want a token in it", link)
	}
	return token
}

// send writes the due invitations, as the queue does, and returns the tokens of their links.
func (w *world) send(t *testing.T) (tokens []string) {
	t.Helper()
	now := w.now()
	letters, err := w.rows.TakeLetters(t.Context(), now, now.Add(time.Minute), 10)
	must(t, err)
	for _, l := range letters {
		if l.Kind != mail.Invitation {
			continue
		}
		draft, err := w.idp.Letters.Write(t.Context(), l)
		must(t, err)
		link, err := url.Parse(draft.Link)
		must(t, err)
		tokens = append(tokens, link.Query().Get("token"))
		must(t, w.rows.SettleLetter(t.Context(), mail.Result{ID: l.ID, State: mail.Sent, Ended: now}))
	}
	return tokens
}

// accept accepts an invitation.
func (w *world) accept(t *testing.T, token string) error {
	t.Helper()
	_, err := w.idp.Accounts.ResetPassword(t.Context(), mail.Invitation, token, good)
	return err
}

// TestInvitation shows that a subscriber's page shows the pending invitation. With the page's forms,
// an operator can send it again, replace it with a link to hand over, and withdraw it.
func TestInvitation(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.eve(t, b)
	part := func() string { return between(b.get(one).body, `<section id="invitation">`, "</section>") }
	shows := func(when string, want ...string) {
		t.Helper()
		got := part()
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: the page shows %q, want %q in it", when, got, text)
			}
		}
	}

	signIn := "/account?project=" + w.one.ID
	if got := b.get(one).find(t, `<dd id="sign-in"><span[^>]*><code>(.*?)</code>`); !strings.HasSuffix(got, signIn) {
		t.Errorf("the page shows the sign-in URL %q, want one that ends with %q", got, signIn)
	}
	shows("before an invitation", "They have no password and no passkey. An invitation",
		"Send an invitation", "Make a link to hand over")
	b.post(one, one+"/invite/withdraw", nil).wantRefused(t) // there is no invitation

	b.post(one, one+"/invite", nil).leadsTo(t, one+"?done=invited")
	shows("while it waits", "waiting to be sent", "Valid until", "7 days after it is sent", "Send again",
		"Withdraw")
	first := w.send(t)
	shows("after the email", "By mail to eve@example.com", "Valid until", "Pending")
	if n := strings.Count(b.get(one).body, "<dt>Status</dt>"); n != 1 {
		t.Errorf("the page of an invited subscriber has %d statuses, want 1", n)
	}
	b.post(one, one+"/invite", nil)
	second := w.send(t)
	if len(first) != 1 || len(second) != 1 {
		t.Fatalf("the two emails contain the links %v and %v, want one each", first, second)
	}
	if err := w.accept(t, first[0]); !errors.Is(err, problem.NotFound) {
		t.Errorf("accepting the first link after another email = %v, want not found", err)
	}

	// A link to hand over replaces mailed links, and does not prove that the subscriber owns the
	// address.
	b.post(one, one+"/invite/link", nil).
		wantText(t, "The link that was mailed to <bdi>eve@example.com</bdi> no longer works.")
	link := handOver(t, b, one)
	shows("after a link to hand over", "As a link to hand over")
	if strings.Contains(part(), link) {
		t.Error("the link is shown twice")
	}
	if err := w.accept(t, second[0]); !errors.Is(err, problem.NotFound) {
		t.Errorf("accepting the mailed link after a link to hand over = %v, want not found", err)
	}
	b.post(one, one+"/invite/withdraw", nil).leadsTo(t, one+"?done=withdrawn")
	if err := w.accept(t, link); !errors.Is(err, problem.NotFound) {
		t.Errorf("accepting a withdrawn link = %v, want not found", err)
	}
	shows("after withdrawing", "Send an invitation")

	link = handOver(t, b, one)
	must(t, w.accept(t, link))
	s, err := w.fabric.Subscribers.Find(t.Context(), w.one.ID, path.Base(one))
	must(t, err)
	if s.Verified {
		t.Error("a link that was handed over verifies the email")
	}
	if s.PasswordHash == "" {
		t.Error("after a link that was handed over, the subscriber has no password")
	}
	b.get(one).wantNoText(t, `id="invitation"`)
}

// TestHandOverBeforeMail shows that a link to hand over replaces an invitation email that has not
// been sent yet, and that the page does not claim that the email was sent.
func TestHandOverBeforeMail(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.eve(t, b)
	b.post(one, one+"/invite", nil)
	replaced := b.post(one, one+"/invite/link", nil)
	replaced.wantText(t, "Earlier links no longer work.")
	replaced.wantNoText(t, "was mailed to")
	if links := w.send(t); len(links) != 0 {
		t.Errorf("after the link to hand over, the email was sent with %v", links)
	}
}

// TestInvitationEnds shows that disabling a subscriber or signing it out everywhere ends its
// invitation for good. Neither a link nor a queued letter gives access once the subscriber is
// enabled again.
func TestInvitationEnds(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.eve(t, b)
	for _, end := range []string{"/disable", "/revoke"} {
		b.post(one, one+"/invite", nil)
		mailed := w.send(t)
		b.post(one, one+"/invite", nil) // waits to be sent
		b.post(one, one+end, nil)
		b.post(one, one+"/enable", nil)
		if err := w.accept(t, mailed[0]); !errors.Is(err, problem.NotFound) {
			t.Errorf("%s: accepting the mailed link = %v, want not found", end, err)
		}
		if late := w.send(t); len(late) != 0 {
			t.Errorf("%s: %d letters were sent afterwards, want none", end, len(late))
		}

		link := handOver(t, b, one)
		b.post(one, one+end, nil)
		b.post(one, one+"/enable", nil)
		if err := w.accept(t, link); !errors.Is(err, problem.NotFound) {
			t.Errorf("%s: accepting the link that was handed over = %v, want not found", end, err)
		}
	}
	b.get(one+"?done=enabled").wantText(t, "cannot sign in without a password")
}
