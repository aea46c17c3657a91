package store

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// TestLinks shows what ends a link: its use, by one of many callers, and a change of what the
// link is bound to.
func TestLinks(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, ahead := grantRows(t, c)
		ctx := t.Context()
		link := func(hash string, purpose mail.Kind) idp.Link {
			return idp.Link{Hash: hash, Purpose: purpose, ProjectID: "p", SubscriberID: "s",
				Email: "a@example.com", Bound: "a@example.com", Created: time.Now(),
				Expires: time.Now().Add(time.Hour)}
		}

		create := func(l idp.Link) {
			t.Helper()
			if err := s.CreateLink(ctx, l); err != nil {
				t.Fatal(err)
			}
		}

		wantGone := func(when string, hashes ...string) {
			t.Helper()
			for _, hash := range hashes {
				if _, err := s.FindLink(ctx, hash); !errors.Is(err, problem.NotFound) {
					t.Errorf("%s: the link %s = %v, want not found", when, hash, err)
				}
			}
		}

		use := func(hash string, purpose mail.Kind, c fabric.SubscriberChange) error {
			c.Proof = &fabric.Proof{Hash: hash, Purpose: string(purpose)}
			_, err := s.UpdateSubscriber(ctx, "p", "s", c, time.Now(), nil)
			return err
		}

		verified := true
		create(link("once", mail.Verify))
		if won, lost := crowd(t, func() error {
			return use("once", mail.Verify, fabric.SubscriberChange{Verified: &verified})
		}); won != 1 || lost != 49 {
			t.Errorf("%d callers used a link and %d did not, want 1 and 49", won, lost)
		}
		if sub, err := s.FindSubscriber(ctx, "p", "s"); err != nil || !sub.Verified {
			t.Errorf("after a verification link was used: %+v, %v", sub, err)
		}

		create(link("reset", mail.Reset))
		for what, err := range map[string]error{
			"another purpose": use("reset", mail.Invitation, fabric.SubscriberChange{Verified: &verified}),
			"an unknown link": use("none", mail.Reset, fabric.SubscriberChange{Verified: &verified}),
		} {
			if !errors.Is(err, problem.Conflict) {
				t.Errorf("%s = %v, want a conflict", what, err)
			}
		}

		other := link("bound", mail.ChangeAddress)
		other.Email, other.Bound = "b@example.com", "elsewhere@example.com"
		if err := s.CreateLink(ctx, other); !errors.Is(err, problem.NotFound) {
			t.Errorf("a link bound to another e-mail = %v, want not found", err)
		}

		alone := link("first", mail.Invitation)
		alone.Alone = true
		create(alone)
		alone.Hash = "second"
		create(alone)
		wantGone("after another invitation", "first")
		if _, err := s.FindLink(ctx, "reset"); err != nil {
			t.Errorf("another invitation ended a link of another purpose: %v", err)
		}

		hash := "another hash"
		if _, err := s.UpdateSubscriber(ctx, "p", "s",
			fabric.SubscriberChange{PasswordHash: &hash}, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		wantGone("after a new password", "second", "reset")

		create(link("moved", mail.Verify))
		email := "b@example.com"
		if _, err := s.UpdateSubscriber(ctx, "p", "s",
			fabric.SubscriberChange{Email: &email}, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		wantGone("after a change of e-mail", "moved")

		moving := link("moving", mail.ChangeAddress) // requested before the password was changed
		moving.Bound = email
		if err := s.CreateLink(ctx, moving); !errors.Is(err, problem.NotFound) {
			t.Errorf("CreateLink to change the address under an old password = %v, want not found", err)
		}

		moving.Epoch = 1
		create(moving)

		late := link("late", mail.Verify)
		late.Bound = email
		create(late)
		ahead.Add(int64(2 * time.Hour))
		if err := use("late", mail.Verify,
			fabric.SubscriberChange{Verified: &verified}); !errors.Is(err, problem.Conflict) {
			t.Errorf("an expired link = %v, want a conflict", err)
		}

		if err := s.ForgetLetters(ctx, s.now(), s.now(), s.now()); err != nil {
			t.Fatal(err)
		}
		wantGone("after the sweep", "late")
	})
}

// TestLetters shows that a letter belongs to one node until its lease ends, and that a letter is
// settled only once.
func TestLetters(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		ctx, now := t.Context(), time.Now()
		letter := mail.Letter{ID: newID(), ProjectID: "p", SubscriberID: "s", Kind: mail.Reset,
			To: "a@example.com", Facts: map[string]string{"request": "r"}, Created: now}
		if err := s.QueueLetter(ctx, letter); err != nil {
			t.Fatal(err)
		}

		take := func(at time.Time) []mail.Letter {
			t.Helper()
			all, err := s.TakeLetters(ctx, at, at.Add(time.Minute), 10)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}

		taken := make(chan int, 50)
		crowd(t, func() error {
			all, err := s.TakeLetters(ctx, now, now.Add(time.Minute), 10)
			taken <- len(all)
			return err
		})

		close(taken)
		total := 0
		for n := range taken {
			total += n
		}
		if total != 1 {
			t.Errorf("fifty nodes took a letter %d times, want once", total)
		}

		if again := take(now.Add(time.Hour)); len(again) != 1 || again[0].Attempts != 2 ||
			again[0].Facts["request"] != "r" {
			t.Errorf("after the lease ended: %+v, want the letter at its second attempt", again)
		}

		settle := func(r mail.Result) mail.Letter {
			t.Helper()
			r.ID = letter.ID
			if err := s.SettleLetter(ctx, r); err != nil {
				t.Fatal(err)
			}
			l, err := s.FindLetter(ctx, letter.ID)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		if l := settle(mail.Result{State: mail.Pending, Error: "away",
			Due: now.Add(24 * time.Hour)}); l.Error != "away" || len(take(now.Add(2*time.Hour))) != 0 {
			t.Errorf("after a failure: %+v, want a pending letter", l)
		}

		if l := settle(mail.Result{State: mail.Dead, Error: "refused", Ended: now}); l.State != mail.Dead ||
			l.Facts["request"] != "r" {
			t.Errorf("after giving up: %+v", l)
		}
		if n, err := s.RetryDeadLetters(ctx); n != 1 || err != nil {
			t.Errorf("RetryDeadLetters = %d, %v, want 1", n, err)
		}

		if len(take(now)) != 1 {
			t.Error("a letter to be retried is not due")
		}
		if l := settle(mail.Result{State: mail.Sent, Ended: now}); l.State != mail.Sent || len(l.Facts) != 0 {
			t.Errorf("sent: %+v, want no facts", l)
		}
		if l := settle(mail.Result{State: mail.Dead, Ended: now}); l.State != mail.Sent {
			t.Errorf("settled twice: %+v, want a sent letter", l)
		}

		if err := s.ForgetLetters(ctx, now.Add(time.Hour), now, now); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FindLetter(ctx, letter.ID); !errors.Is(err, problem.NotFound) {
			t.Errorf("an expired letter = %v, want not found", err)
		}
	})
}
