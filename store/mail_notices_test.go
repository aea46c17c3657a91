package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// noticesOf returns the kinds of the pending letters, the oldest first. For changes to factors, it
// adds the change and the number of recovery codes that are left.
func noticesOf(t *testing.T, s *Store) (notices []string) {
	t.Helper()
	letters, err := s.ListLetters(t.Context(), mail.Pending, page.Query{Size: page.MaxSize})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range slices.Backward(letters.Items) {
		if l.To != "a@example.com" {
			t.Errorf("a letter is to %q, want a@example.com", l.To)
		}
		if l.ProjectID != "p" {
			t.Errorf("a letter belongs to the project %q, want p", l.ProjectID)
		}
		if l.SubscriberID != "s" {
			t.Errorf("a letter is to the subscriber %q, want s", l.SubscriberID)
		}
		notice := string(l.Kind) + " " + l.Facts["what"] + " " + l.Facts["left"]
		notices = append(notices, strings.TrimSpace(notice))
	}
	return notices
}

// newestLetter returns the letter that was queued last.
func newestLetter(t *testing.T, s *Store) mail.Letter {
	t.Helper()
	letters, err := s.ListLetters(t.Context(), mail.Pending, page.Query{Size: 1})
	if err != nil || len(letters.Items) != 1 {
		t.Fatalf("the first page of the pending letters is %+v, %v, want one letter", letters.Items, err)
	}
	return letters.Items[0]
}

// TestNotices shows that the owner of an account is notified of logins on new devices and of
// changes to factors. Failed changes cause no notice.
func TestNotices(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, g, _ := grantRows(t, c)
		ctx := audit.With(t.Context(), &audit.Origin{
			Actor:   audit.Actor{Kind: audit.Anonymous},
			Address: "192.0.2.7",
			Agent:   "Mozilla/5.0 (X11; Linux) Firefox/140.0",
		})
		want := func(notices ...string) {
			t.Helper()
			if got := noticesOf(t, s); !slices.Equal(got, notices) {
				t.Errorf("the owner is notified of %q, want %q", got, notices)
			}
		}

		notice := func() mail.Letter {
			return mail.Letter{
				ID:           newID(),
				ProjectID:    "p",
				SubscriberID: "s",
				Kind:         mail.NewDevice,
				To:           "a@example.com",
				Created:      time.Now(),
			}
		}

		signIn(t, s, g)
		l := login(g)
		l.ID = newID()
		if err := s.CreateLogin(ctx, l, "another hash", notice()); !errors.Is(err, problem.Conflict) {
			t.Errorf("a login with a different password = %v, want a conflict", err)
		}
		want()

		for range 2 {
			l.ID = newID()
			if err := s.CreateLogin(ctx, l, "hash", notice()); err != nil {
				t.Fatal(err)
			}
		}
		want("new_device", "new_device")

		app := factor.TOTP{ID: newID(), Owner: ada, Sealed: "x"}
		key := factor.Passkey{ID: newID(), Owner: ada, Credential: "c", Name: "Phone", Record: []byte("{}")}
		err := errors.Join(
			s.CreateTOTP(ctx, app, false),
			s.CreatePasskey(ctx, key, false),
			s.CreateRecoveryCodes(ctx, ada, []string{"x"}, time.Now()),
			s.ReplaceRecoveryCodes(ctx, ada, []string{"1", "2"}, time.Now()),
			s.TakeRecoveryCode(ctx, ada, "1"),
			s.TakeRecoveryCode(ctx, ada, "2"),
			s.ReplaceRecoveryCodes(ctx, ada, []string{"3"}, time.Now()),
			s.ReplaceRecoveryCodes(ctx, ada, nil, time.Now()),
			s.ReplaceRecoveryCodes(ctx, ada, nil, time.Now()), // changes nothing
			s.DeleteTOTP(ctx, ada, app.ID),
			s.DeletePasskey(ctx, ada, key.ID, false),
		)
		if err != nil {
			t.Fatal(err)
		}

		for what, err := range map[string]error{
			"a used code":       s.TakeRecoveryCode(ctx, ada, "1"),
			"a removed app":     s.DeleteTOTP(ctx, ada, app.ID),
			"a removed passkey": s.DeletePasskey(ctx, ada, key.ID, false),
		} {
			if !errors.Is(err, problem.NotFound) {
				t.Errorf("%s = %v, want not found", what, err)
			}
		}

		want(
			"new_device",
			"new_device",
			"factor_changed totp_added",
			"factor_changed passkey_added",
			"factor_changed codes_replaced",
			"factor_changed code_used 1",
			"factor_changed codes_used_up",
			"factor_changed codes_replaced",
			"factor_changed codes_removed",
			"factor_changed totp_removed",
			"factor_changed passkey_removed",
		)
		facts := newestLetter(t, s).Facts
		if facts["name"] != "Phone" {
			t.Errorf("the removed passkey is called %q, want Phone", facts["name"])
		}
		if facts["address"] != "192.0.2.7" {
			t.Errorf("the passkey was removed from the address %q, want 192.0.2.7", facts["address"])
		}
		if facts["by"] != "" {
			t.Errorf(`the passkey was removed by %q, want "" for the owner`, facts["by"])
		}

		others := audit.With(t.Context(), &audit.Origin{Actor: audit.Actor{Kind: audit.APIKey}, Address: "192.0.2.9"})
		if err := s.CreateTOTP(others, app, false); err != nil {
			t.Fatal(err)
		}

		facts = newestLetter(t, s).Facts
		if facts["by"] == "" {
			t.Error("the notice of a change by others does not say who made it")
		}
		if facts["address"] != "" {
			t.Errorf("the notice of a change by others has the address %q, want none", facts["address"])
		}
	})
}

// TestEpoch shows that a new password, or a link that ends the logins, starts a new epoch. A
// new name does not.
func TestEpoch(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		epochAfter := func(change fabric.SubscriberChange) int64 {
			t.Helper()
			changed, err := s.UpdateSubscriber(t.Context(), "p", "s", change, time.Now(), nil)
			if err != nil {
				t.Fatal(err)
			}
			found, err := s.FindSubscriber(t.Context(), "p", "s")
			if err != nil || found.Epoch != changed.Epoch {
				t.Errorf("FindSubscriber returns the epoch %d, %v, want %d", found.Epoch, err, changed.Epoch)
			}
			return changed.Epoch
		}

		name, hash := "Ada", "another hash"
		if got := epochAfter(fabric.SubscriberChange{Profile: fabric.Profile{FirstName: &name}}); got != 0 {
			t.Errorf("after a change of the name: epoch %d, want 0", got)
		}
		if got := epochAfter(fabric.SubscriberChange{PasswordHash: &hash}); got != 1 {
			t.Errorf("after a new password: epoch %d, want 1", got)
		}

		link := idp.Link{
			Hash:         "h",
			Purpose:      mail.Reset,
			ProjectID:    "p",
			SubscriberID: "s",
			Email:        "a@example.com",
			Bound:        "a@example.com",
			Created:      time.Now(),
			Expires:      time.Now().Add(time.Hour),
		}
		if err := s.CreateLink(t.Context(), link); err != nil {
			t.Fatal(err)
		}

		proof := &fabric.Proof{Hash: "h", Purpose: string(mail.Reset), Ends: true}
		if got := epochAfter(fabric.SubscriberChange{Proof: proof}); got != 2 {
			t.Errorf("after a link that ends the logins: epoch %d, want 2", got)
		}
	})
}
