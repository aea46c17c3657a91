package store

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A linkStore is a store with the subscriber s of the project p, and links for it.
type linkStore struct {
	*Store
	t     *testing.T
	ahead *atomic.Int64
}

func eachLinkStore(t *testing.T, test func(s linkStore)) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, ahead := grantRows(t, c)
		test(linkStore{s, t, ahead})
	})
}

func link(hash string, purpose mail.Kind) idp.Link {
	return idp.Link{
		Hash:         hash,
		Purpose:      purpose,
		ProjectID:    "p",
		SubscriberID: "s",
		Email:        "a@example.com",
		Bound:        "a@example.com",
		Created:      time.Now(),
		Expires:      time.Now().Add(time.Hour),
	}
}

func (s linkStore) create(l idp.Link) {
	s.t.Helper()
	if err := s.CreateLink(s.t.Context(), l); err != nil {
		s.t.Fatal(err)
	}
}

func (s linkStore) update(c fabric.SubscriberChange) {
	s.t.Helper()
	if _, err := s.UpdateSubscriber(s.t.Context(), "p", "s", c, time.Now(), nil); err != nil {
		s.t.Fatal(err)
	}
}

// use verifies the subscriber's address with a link.
func (s linkStore) use(hash string, purpose mail.Kind) error {
	verified := true
	_, err := s.UpdateSubscriber(s.t.Context(), "p", "s", fabric.SubscriberChange{Verified: &verified,
		Proof: &fabric.Proof{Hash: hash, Purpose: string(purpose)}}, time.Now(), nil)
	return err
}

func (s linkStore) wantGone(when string, hashes ...string) {
	s.t.Helper()
	for _, hash := range hashes {
		if _, err := s.FindLink(s.t.Context(), hash); !errors.Is(err, problem.NotFound) {
			s.t.Errorf("%s: the link %s = %v, want not found", when, hash, err)
		}
	}
}

// TestUseLink shows that a link can be used once, even by many concurrent callers, only for its
// purpose, and only before it expires.
func TestUseLink(t *testing.T) {
	eachLinkStore(t, func(s linkStore) {
		s.create(link("once", mail.Verify))
		won, lost := crowd(s.t, func() error { return s.use("once", mail.Verify) })
		if won != 1 || lost != 49 {
			s.t.Errorf("%d callers used a link and %d did not, want 1 and 49", won, lost)
		}
		if sub, err := s.FindSubscriber(s.t.Context(), "p", "s"); err != nil || !sub.Verified {
			s.t.Errorf("after a verification link was used: %+v, %v, want it verified", sub, err)
		}

		s.create(link("reset", mail.Reset))
		s.create(link("late", mail.Verify))
		if err := s.use("reset", mail.Invitation); !errors.Is(err, problem.Conflict) {
			s.t.Errorf("another purpose = %v, want a conflict", err)
		}
		if err := s.use("none", mail.Reset); !errors.Is(err, problem.Conflict) {
			s.t.Errorf("an unknown link = %v, want a conflict", err)
		}

		s.ahead.Add(int64(2 * time.Hour))
		if err := s.use("late", mail.Verify); !errors.Is(err, problem.Conflict) {
			s.t.Errorf("an expired link = %v, want a conflict", err)
		}
		if err := s.ForgetLetters(s.t.Context(), s.now(), s.now(), s.now()); err != nil {
			s.t.Fatal(err)
		}
		s.wantGone("after the sweep", "late")
	})
}

// TestLinkBound shows that a link becomes invalid if the email address or the password changes, or
// if there is a newer invitation.
func TestLinkBound(t *testing.T) {
	eachLinkStore(t, func(s linkStore) {
		ctx := s.t.Context()
		other := link("bound", mail.ChangeAddress)
		other.Email, other.Bound = "b@example.com", "elsewhere@example.com"
		if err := s.CreateLink(ctx, other); !errors.Is(err, problem.NotFound) {
			s.t.Errorf("a link bound to another email = %v, want not found", err)
		}

		s.create(link("reset", mail.Reset))
		alone := link("first", mail.Invitation)
		alone.Alone = true
		s.create(alone)
		alone.Hash = "second"
		s.create(alone)
		s.wantGone("after another invitation", "first")
		if _, err := s.FindLink(ctx, "reset"); err != nil {
			s.t.Errorf("another invitation ended a link of another purpose: %v", err)
		}

		hash := "another hash"
		s.update(fabric.SubscriberChange{PasswordHash: &hash})
		s.wantGone("after a new password", "second", "reset")

		s.create(link("moved", mail.Verify))
		email := "b@example.com"
		s.update(fabric.SubscriberChange{Email: &email})
		s.wantGone("after a change of email", "moved")

		moving := link("moving", mail.ChangeAddress) // requested before the password was changed
		moving.Bound = email
		if err := s.CreateLink(ctx, moving); !errors.Is(err, problem.NotFound) {
			s.t.Errorf("CreateLink to change the address under an old password = %v, want not found", err)
		}
		moving.Epoch = 1
		s.create(moving)
	})
}

// TestLinkWithdrawn shows that a letter creates no link after its invitation was withdrawn, even if
// the letter was being written at that time. The same is true after the subscriber was disabled.
func TestLinkWithdrawn(t *testing.T) {
	eachLinkStore(t, func(s linkStore) {
		ctx := s.t.Context()
		disabled := true
		end := revocation.Revocation{Kind: revocation.Subscriber, ID: "s", Until: time.Now(), Expires: time.Now()}
		disable := func() error {
			c := fabric.SubscriberChange{Disabled: &disabled}
			_, err := s.UpdateSubscriber(ctx, "p", "s", c, time.Now(), &end)
			enabled := false
			s.update(fabric.SubscriberChange{Disabled: &enabled})
			return err
		}

		for what, withdraw := range map[string]func() error{
			"withdrawing": func() error { return s.WithdrawInvitationOf(ctx, "p", "s") },
			"disabling":   disable,
		} {
			letter := mail.Letter{ID: newID(), ProjectID: "p", SubscriberID: "s", Kind: mail.Invitation,
				To: "a@example.com", Created: time.Now()}
			if err := s.QueueLetter(ctx, letter); err != nil {
				s.t.Fatal(err)
			}
			of := link("of the letter, before "+what, mail.Invitation)
			of.Letter = letter.ID
			s.create(of)

			if err := withdraw(); err != nil {
				s.t.Fatalf("%s: %v", what, err)
			}
			s.wantGone(what, of.Hash)
			of.Hash = "of the letter, after " + what
			if err := s.CreateLink(ctx, of); !errors.Is(err, problem.NotFound) {
				s.t.Errorf("%s: a link of the letter = %v, want not found", what, err)
			}
		}
	})
}

// A letterStore is a store with one letter to the subscriber s of the project p.
type letterStore struct {
	*Store
	t      *testing.T
	letter mail.Letter
}

func eachLetterStore(t *testing.T, test func(s letterStore)) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		letter := mail.Letter{
			ID:           newID(),
			ProjectID:    "p",
			SubscriberID: "s",
			Kind:         mail.Reset,
			To:           "a@example.com",
			Facts:        map[string]string{"request": "r"},
			Created:      time.Now(),
		}
		if err := s.QueueLetter(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
		test(letterStore{s, t, letter})
	})
}

// take takes the letters that are due at the given time, with a lease of one minute.
func (s letterStore) take(at time.Time) []mail.Letter {
	s.t.Helper()
	all, err := s.TakeLetters(s.t.Context(), at, at.Add(time.Minute), 10)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// settle settles the letter with the result r, and returns it.
func (s letterStore) settle(r mail.Result) mail.Letter {
	s.t.Helper()
	r.ID = s.letter.ID
	if err := s.SettleLetter(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
	l, err := s.FindLetter(s.t.Context(), s.letter.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// TestTakeLetters shows that only one node gets a letter before its lease ends.
func TestTakeLetters(t *testing.T) {
	eachLetterStore(t, func(s letterStore) {
		now := s.letter.Created
		taken := make(chan int, 50)
		crowd(s.t, func() error {
			all, err := s.TakeLetters(s.t.Context(), now, now.Add(time.Minute), 10)
			taken <- len(all)
			return err
		})

		close(taken)
		total := 0
		for n := range taken {
			total += n
		}
		if total != 1 {
			s.t.Errorf("fifty nodes took a letter %d times, want once", total)
		}

		if again := s.take(now.Add(time.Hour)); len(again) != 1 || again[0].Attempts != 2 ||
			again[0].Facts["request"] != "r" {
			s.t.Errorf("after the lease ended: %+v, want the letter at its second attempt", again)
		}
	})
}

// TestSettleLetter shows that a letter can be settled only once, except that a dead letter can be
// retried. When a letter is sent, its facts are deleted.
func TestSettleLetter(t *testing.T) {
	eachLetterStore(t, func(s letterStore) {
		ctx, now := s.t.Context(), s.letter.Created
		if len(s.take(now)) != 1 {
			s.t.Fatal("a new letter is not due")
		}
		if l := s.settle(mail.Result{
			State: mail.Pending,
			Error: "away",
			Due:   now.Add(24 * time.Hour),
		}); l.Error != "away" || len(s.take(now.Add(2*time.Hour))) != 0 {
			s.t.Errorf("after a failure: %+v, want a pending letter", l)
		}

		if l := s.settle(mail.Result{State: mail.Dead, Error: "refused", Ended: now}); l.State != mail.Dead ||
			l.Facts["request"] != "r" {
			s.t.Errorf("after giving up: %+v, want a dead letter with its facts", l)
		}
		if n, err := s.RetryDeadLetters(ctx); n != 1 || err != nil {
			s.t.Errorf("RetryDeadLetters = %d, %v, want 1", n, err)
		}

		if len(s.take(now)) != 1 {
			s.t.Error("a letter to be retried is not due")
		}
		if l := s.settle(mail.Result{State: mail.Sent, Ended: now}); l.State != mail.Sent || len(l.Facts) != 0 {
			s.t.Errorf("sent: %+v, want no facts", l)
		}
		if l := s.settle(mail.Result{State: mail.Dead, Ended: now}); l.State != mail.Sent {
			s.t.Errorf("settled twice: %+v, want a sent letter", l)
		}

		if err := s.ForgetLetters(ctx, now.Add(time.Hour), now, now); err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.FindLetter(ctx, s.letter.ID); !errors.Is(err, problem.NotFound) {
			s.t.Errorf("an expired letter = %v, want not found", err)
		}
	})
}
