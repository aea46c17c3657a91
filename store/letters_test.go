package store

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

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
		test(letterStore{Store: s, t: t, letter: letter})
	})
}

// take takes the letters that are due at the given time, with a lease of one minute.
func (s letterStore) take(at time.Time) []mail.Letter {
	s.t.Helper()
	taken, err := s.TakeLetters(s.t.Context(), at, at.Add(time.Minute), 10)
	if err != nil {
		s.t.Fatal(err)
	}
	return taken
}

// settle settles the letter with the result r, and returns it.
func (s letterStore) settle(r mail.Result) mail.Letter {
	s.t.Helper()
	r.ID = s.letter.ID
	if err := s.SettleLetter(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
	letter, err := s.FindLetter(s.t.Context(), s.letter.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return letter
}

// TestTakeLetters shows that of many nodes that take a letter, only one gets it. After that node's
// lease, the letter can be taken again.
func TestTakeLetters(t *testing.T) {
	eachLetterStore(t, func(s letterStore) {
		now := s.letter.Created
		var taken atomic.Int64
		crowd(s.t, func() error {
			letters, err := s.TakeLetters(s.t.Context(), now, now.Add(time.Minute), 10)
			taken.Add(int64(len(letters)))
			return err
		})
		if n := taken.Load(); n != 1 {
			s.t.Errorf("fifty nodes took a letter %d times, want once", n)
		}

		again := s.take(now.Add(time.Hour))
		if len(again) != 1 {
			s.t.Fatalf("after the lease ended: %+v, want the letter", again)
		}
		if again[0].Attempts != 2 {
			s.t.Errorf("after the lease ended: attempt %d, want 2", again[0].Attempts)
		}
		if got := again[0].Facts["request"]; got != "r" {
			s.t.Errorf("after the lease ended: the request is %q, want r", got)
		}
	})
}

// TestSettleLetter shows that a failed attempt postpones a letter, that a dead letter can be retried,
// and that a sent letter keeps its state. When a letter is sent, its facts are deleted.
func TestSettleLetter(t *testing.T) {
	eachLetterStore(t, func(s letterStore) {
		ctx := s.t.Context()
		now := s.letter.Created
		if len(s.take(now)) != 1 {
			s.t.Fatal("a new letter is not due")
		}
		failed := s.settle(mail.Result{State: mail.Pending, Error: "away", Due: now.Add(24 * time.Hour)})
		if failed.Error != "away" {
			s.t.Errorf("after a failure the error is %q, want away", failed.Error)
		}
		if n := len(s.take(now.Add(2 * time.Hour))); n != 0 {
			s.t.Errorf("after a failure %d letters are due too early", n)
		}

		dead := s.settle(mail.Result{State: mail.Dead, Error: "refused", Ended: now})
		if dead.State != mail.Dead {
			s.t.Errorf("after giving up the letter is %s, want %s", dead.State, mail.Dead)
		}
		if got := dead.Facts["request"]; got != "r" {
			s.t.Errorf("after giving up the request is %q, want r", got)
		}
		n, err := s.RetryDeadLetters(ctx)
		if err != nil || n != 1 {
			s.t.Errorf("RetryDeadLetters = %d, %v, want 1", n, err)
		}
		if len(s.take(now)) != 1 {
			s.t.Error("after RetryDeadLetters the letter is not due")
		}

		sent := s.settle(mail.Result{State: mail.Sent, Ended: now})
		if sent.State != mail.Sent {
			s.t.Errorf("the sent letter is %s, want %s", sent.State, mail.Sent)
		}
		if len(sent.Facts) != 0 {
			s.t.Errorf("the sent letter has the facts %v, want none", sent.Facts)
		}
		again := s.settle(mail.Result{State: mail.Dead, Ended: now})
		if again.State != mail.Sent {
			s.t.Errorf("after another result, the sent letter is %s, want %s", again.State, mail.Sent)
		}

		if err := s.ForgetLetters(ctx, now.Add(time.Hour), now, now); err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.FindLetter(ctx, s.letter.ID); !errors.Is(err, problem.NotFound) {
			s.t.Errorf("FindLetter of an expired letter = %v, want not found", err)
		}
	})
}
