package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// rounds is how many times each test runs conflicting operations concurrently.
const rounds = 30

// together runs all functions concurrently, and waits until they have returned.
func together(do ...func()) {
	var begun, ended sync.WaitGroup
	begun.Add(len(do))
	for _, f := range do {
		ended.Go(func() {
			begun.Done()
			begun.Wait()
			f()
		})
	}
	ended.Wait()
}

// expect fails the test unless err is nil or of one of the given kinds.
func expect(t *testing.T, doing string, err error, kinds ...problem.Kind) {
	t.Helper()
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return
		}
	}
	if err != nil {
		t.Errorf("%s = %v, want nil or one of %v", doing, err, kinds)
	}
}

func end(kind, id string) revocation.Revocation {
	return revocation.Revocation{Kind: kind, ID: id, Until: time.Now(), Expires: time.Now().Add(time.Hour)}
}

// TestDeleteAgainstChanges shows that concurrent deletions and changes do not deadlock, in any
// order.
func TestDeleteAgainstChanges(t *testing.T) { EachDatabase(t, testDeleteAgainstChanges) }

func testDeleteAgainstChanges(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := t.Context()
	signIn(t, s, g)
	g.ID = newID()
	if err := s.RedeemCode(ctx, idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c"}, g); err != nil {
		t.Fatal(err)
	}

	// Changes of rows that a concurrent call has deleted fail with one of these.
	gone := []problem.Kind{problem.NotFound, problem.Conflict}
	together(
		func() {
			err := s.DeleteProject(ctx, end(revocation.Project, "p"))
			expect(t, "DeleteProject", err)
		},
		func() {
			err := s.DeleteSubscriber(ctx, "p", end(revocation.Subscriber, "s"))
			expect(t, "DeleteSubscriber", err, gone...)
		},
		func() {
			err := s.DeleteClient(ctx, end(revocation.Client, "c"))
			expect(t, "DeleteClient", err, gone...)
		},
		func() {
			err := s.EndLogins(ctx, time.Now(), end(revocation.Session, g.SessionID))
			expect(t, "EndLogins", err)
		},
		func() {
			err := s.RevokeGrant(ctx, g.ID, time.Now(), end(revocation.Grant, g.ID))
			expect(t, "RevokeGrant", err)
		},
		func() {
			rotated := idp.Grant{ID: g.ID, RefreshHash: "second"}
			expect(t, "RotateGrant", s.RotateGrant(ctx, rotated, "first"), gone...)
		},
		func() {
			l := login(idp.Grant{SessionID: newID()})
			expect(t, "CreateLogin", s.CreateLogin(ctx, l, "hash"), gone...)
		},
		func() {
			err := s.AddConsent(ctx, "s", "c", []string{"openid"}, time.Now())
			expect(t, "AddConsent", err, gone...)
		},
		func() {
			hash := "new"
			change := fabric.SubscriberChange{PasswordHash: &hash}
			r := end(revocation.Subscriber, "s")
			_, err := s.UpdateSubscriber(ctx, "p", "s", change, time.Now(), &r)
			expect(t, "UpdateSubscriber", err, gone...)
		},
		func() {
			g := g
			g.ID = newID()
			code := idp.RedeemedCode{Hash: "i", GrantID: g.ID, ClientID: "c"}
			expect(t, "RedeemCode", s.RedeemCode(ctx, code, g), gone...)
		},
	)
}

// TestAssignAgainstDelete shows that calls are never assigned to a deleted resource. If a deletion
// and an assignment run concurrently, exactly one of them fails.
func TestAssignAgainstDelete(t *testing.T) { EachDatabase(t, testAssignAgainstDelete) }

func testAssignAgainstDelete(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	create := func(fields kinds.Values) (fabric.Resource, error) {
		r := fabric.Resource{ID: newID(), ProjectID: "p", Type: "swml_script", Fields: fields}
		address := fabric.Address{ID: newID(), ProjectID: "p", ResourceID: r.ID, Name: r.ID}
		return r, s.CreateResource(ctx, r, address, nil)
	}

	for round := range rounds {
		target, err := create(nil)
		if err != nil {
			t.Fatal(err)
		}

		assigns := []struct {
			name string
			do   func() error
		}{
			{
				name: "PutPhoneRoute",
				do: func() error {
					return s.PutPhoneRoute(ctx, fabric.PhoneRoute{
						ID:         newID(),
						ProjectID:  "p",
						Handler:    "calling",
						ResourceID: target.ID,
					})
				},
			},
			{
				name: "CreateSIPAddress",
				do: func() error {
					return s.CreateSIPAddress(ctx, fabric.SIPAddress{
						ID:         newID(),
						ProjectID:  "p",
						ResourceID: target.ID,
						Fields:     kinds.Values{"name": []byte(fmt.Sprintf("%q", newID()))},
					})
				},
			},
			{
				name: "CreateResource",
				do: func() error {
					handler := []byte(fmt.Sprintf("%q", target.ID))
					_, err := create(kinds.Values{"calling_handler_resource_id": handler})
					return err
				},
			},
		}
		assign := assigns[round%len(assigns)]
		var assigned, deleted error
		together(func() { assigned = assign.do() }, func() {
			deleted = s.DeleteResource(ctx, "p", "swml_script", target.ID, revocation.Revocation{}, nil)
		})
		expect(t, assign.name, assigned, problem.NotFound)
		expect(t, "DeleteResource", deleted, problem.Conflict)
		if assigned == nil && deleted == nil {
			t.Errorf("round %d: %s and DeleteResource both succeed, want only one", round, assign.name)
		}
		if assigned != nil && deleted != nil {
			t.Errorf("round %d: %s = %v and DeleteResource = %v, want one to succeed", round, assign.name,
				assigned, deleted)
		}
	}
}

// TestConsentsAtOnce shows that no consent is lost if several are given concurrently.
func TestConsentsAtOnce(t *testing.T) { EachDatabase(t, testConsentsAtOnce) }

func testConsentsAtOnce(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := t.Context()
	var additions []func()
	for i := range 10 {
		scopes := []string{"openid", fmt.Sprint("scope", i)}
		additions = append(additions, func() {
			err := s.AddConsent(ctx, g.SubscriberID, g.ClientID, scopes, time.Now())
			expect(t, "AddConsent", err)
		})
	}
	together(additions...)

	agreed, err := s.FindConsent(ctx, g.SubscriberID, g.ClientID)
	if err != nil || len(agreed) != 11 {
		t.Errorf("FindConsent = %v, %v, want 11 scopes", agreed, err)
	}
}
