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
		test(linkStore{Store: s, t: t, ahead: ahead})
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
	change := fabric.SubscriberChange{
		Verified: &verified,
		Proof:    &fabric.Proof{Hash: hash, Purpose: string(purpose)},
	}
	_, err := s.UpdateSubscriber(s.t.Context(), "p", "s", change, time.Now(), nil)
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
		if won != 1 {
			s.t.Errorf("%d callers used a link, want 1", won)
		}
		if lost != 49 {
			s.t.Errorf("%d callers could not use a link, want 49", lost)
		}
		sub, err := s.FindSubscriber(s.t.Context(), "p", "s")
		if err != nil {
			s.t.Fatal(err)
		}
		if !sub.Verified {
			s.t.Error("after a verification link was used, the subscriber is not verified")
		}

		s.create(link("reset", mail.Reset))
		s.create(link("late", mail.Verify))
		if err := s.use("reset", mail.Invitation); !errors.Is(err, problem.Conflict) {
			s.t.Errorf("using a link for another purpose = %v, want a conflict", err)
		}
		if err := s.use("none", mail.Reset); !errors.Is(err, problem.Conflict) {
			s.t.Errorf("using an unknown link = %v, want a conflict", err)
		}

		s.ahead.Add(int64(2 * time.Hour))
		if err := s.use("late", mail.Verify); !errors.Is(err, problem.Conflict) {
			s.t.Errorf("using an expired link = %v, want a conflict", err)
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
		other.Email = "b@example.com"
		other.Bound = "elsewhere@example.com"
		if err := s.CreateLink(ctx, other); !errors.Is(err, problem.NotFound) {
			s.t.Errorf("creating a link bound to another email = %v, want not found", err)
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

// TestLinkWithdrawn shows that no link is created for the letter of an invitation that was withdrawn
// while the letter was being written. The same is true if the subscriber was disabled in the meantime.
func TestLinkWithdrawn(t *testing.T) {
	eachLinkStore(t, func(s linkStore) {
		ctx := s.t.Context()
		disabled, enabled := true, false
		end := revocation.Revocation{Kind: revocation.Subscriber, ID: "s", Until: time.Now(), Expires: time.Now()}
		disable := func() error {
			change := fabric.SubscriberChange{Disabled: &disabled}
			if _, err := s.UpdateSubscriber(ctx, "p", "s", change, time.Now(), &end); err != nil {
				return err
			}
			s.update(fabric.SubscriberChange{Disabled: &enabled})
			return nil
		}

		for what, withdraw := range map[string]func() error{
			"withdrawing": func() error { return s.WithdrawInvitationOf(ctx, "p", "s") },
			"disabling":   disable,
		} {
			letter := mail.Letter{
				ID:           newID(),
				ProjectID:    "p",
				SubscriberID: "s",
				Kind:         mail.Invitation,
				To:           "a@example.com",
				Created:      time.Now(),
			}
			if err := s.QueueLetter(ctx, letter); err != nil {
				s.t.Fatal(err)
			}
			ofLetter := link("of the letter, before "+what, mail.Invitation)
			ofLetter.Letter = letter.ID
			s.create(ofLetter)

			if err := withdraw(); err != nil {
				s.t.Fatalf("%s: %v", what, err)
			}
			s.wantGone(what, ofLetter.Hash)
			ofLetter.Hash = "of the letter, after " + what
			if err := s.CreateLink(ctx, ofLetter); !errors.Is(err, problem.NotFound) {
				s.t.Errorf("creating a link for the letter after %s = %v, want not found", what, err)
			}
		}
	})
}
