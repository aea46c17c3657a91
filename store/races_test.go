package store

import (
	"cmp"
	"context"
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
	"github.com/selvage/selvage/recordings"
)

// rounds is how many times each test makes conflicting operations run concurrently.
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

// expect reports a test error if err is not nil and not of one of the given kinds.
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

// TestLoginsAgainstEnds shows that if new logins begin while the logins of a subscriber are ended,
// the new logins are either ended or prevented.
func TestLoginsAgainstEnds(t *testing.T) { EachDatabase(t, testLoginsAgainstEnds) }

func testLoginsAgainstEnds(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := context.Background()
	hash, off := "hash", true
	for round := range rounds {
		next := fmt.Sprint("hash", round)
		change := fabric.SubscriberChange{PasswordHash: &next}
		if round%2 == 1 {
			change = fabric.SubscriberChange{Disabled: &off}
		}

		var begun []idp.Login
		var mu sync.Mutex
		logIn := func() {
			l := login(idp.Grant{SessionID: newID()})
			if err := s.CreateLogin(ctx, l, hash); err == nil {
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, l)
			} else {
				expect(t, "CreateLogin", err, problem.Conflict)
			}
		}

		together(logIn, logIn, logIn, logIn, func() {
			r := end(revocation.Subscriber, "s")
			_, err := s.UpdateSubscriber(ctx, "p", "s", change, time.Now(), &r)
			expect(t, "UpdateSubscriber", err)
		}, logIn, logIn, logIn, logIn)
		for _, l := range begun {
			if got, err := s.FindLogin(ctx, l.ID); err != nil || got.Ended.IsZero() {
				t.Errorf("round %d: a login that started while all were ended: %+v, %v, want it ended", round, got, err)
			}
		}

		on := false
		if _, err := s.UpdateSubscriber(ctx, "p", "s",
			fabric.SubscriberChange{Disabled: &on}, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			hash = next
		}
	}
}

// TestRedeemAgainstEnds shows that if a code is redeemed while its login, client, consent or
// subscriber ends, the result is a revoked grant or no grant. If the login has ended, the client
// gets one logout if it had a grant, and otherwise none.
func TestRedeemAgainstEnds(t *testing.T) { EachDatabase(t, testRedeemAgainstEnds) }

func testRedeemAgainstEnds(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := context.Background()
	ends := []struct {
		name string
		do   func(g idp.Grant) error
	}{
		{"EndSession", func(g idp.Grant) error {
			return s.EndLogins(ctx, time.Now(), end(revocation.Session, g.SessionID))
		}},
		{"UpdateSubscriber", func(idp.Grant) error {
			hash, email, r := "hash", newID()+"@example.com", end(revocation.Subscriber, "s")
			_, err := s.UpdateSubscriber(
				ctx, "p", "s", fabric.SubscriberChange{PasswordHash: &hash, Email: &email}, time.Now(), &r)
			return err
		}},
		{"RevokeConsent", func(g idp.Grant) error {
			return s.RevokeConsent(ctx, "s", g.ClientID, time.Now(), func(id string) revocation.Revocation {
				return end(revocation.Grant, id)
			})
		}},
		{"DeleteClient", func(g idp.Grant) error { return s.DeleteClient(ctx, end(revocation.Client, g.ClientID)) }},
		{"DeleteSubscriber", func(idp.Grant) error {
			return s.DeleteSubscriber(ctx, "p", end(revocation.Subscriber, "s"))
		}},
	}

	for i, e := range ends {
		for round := range rounds {
			if e.name == "DeleteSubscriber" && round > 0 {
				break
			}

			g.SessionID, g.ClientID = newID(), newID()
			signIn(t, s, g)
			client := idp.Client{ID: g.ClientID, ProjectID: "p", Created: time.Now(), Metadata: listens}
			if err := errors.Join(s.CreateClient(ctx, client),
				s.AddConsent(ctx, "s", g.ClientID, []string{"openid"}, time.Now())); err != nil {
				t.Fatal(err)
			}

			var mu sync.Mutex
			var given []string
			redeem := func() {
				g := g
				g.ID = newID()
				if err := s.RedeemCode(ctx, idp.RedeemedCode{Hash: newID(), GrantID: g.ID, ClientID: g.ClientID,
					Rights: []string{"openid"}}, g); err == nil {
					mu.Lock()
					defer mu.Unlock()
					given = append(given, g.ID)
				} else {
					expect(t, "RedeemCode against "+e.name, err, problem.NotFound)
				}
			}

			together(redeem, redeem, redeem, func() { expect(t, ends[i].name, e.do(g)) }, redeem, redeem, redeem)
			for _, id := range given {
				if got, err := s.FindGrant(ctx, id); err == nil && got.Revoked.IsZero() {
					t.Errorf("a grant redeemed during %s is still valid: %+v", e.name, got)
				} else {
					expect(t, "FindGrant", err, problem.NotFound)
				}
			}

			switch e.name {
			case "DeleteClient":
			case "RevokeConsent":
				wantLogouts(t, s, g.ClientID, 0) // the login continues
			default:
				wantLogouts(t, s, g.ClientID, min(len(given), 1))
			}
		}
	}
}

// TestAddRecordingAgainstDelete shows that all concurrent uploads of a recording return the same
// recording, even while the recording is being deleted.
func TestAddRecordingAgainstDelete(t *testing.T) { EachDatabase(t, testAddRecordingAgainstDelete) }

func testAddRecordingAgainstDelete(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := context.Background()
	for range rounds {
		var mu sync.Mutex
		kept := map[string]int{}
		var all []func()
		for range 10 {
			all = append(all, func() {
				r := recordings.Recording{ID: newID(), Sid: newID(), ProjectID: "p", Created: time.Now()}
				got, added, err := s.AddRecording(
					ctx, r, recordings.Arrival{Identity: "same", SubscriberIDs: []string{"s"}})
				expect(t, "AddRecording", err)
				mu.Lock()
				defer mu.Unlock()
				if kept[got.ID] += 0; added {
					kept[got.ID]++
				}
				if _, err := s.DeleteRecording(ctx, "p", got.Sid, recordings.Removal{At: time.Now()}); err != nil {
					expect(t, "DeleteRecording", err, problem.NotFound)
				}
			})
		}

		together(all...)
		for id, n := range kept {
			if n != 1 {
				t.Errorf("recording %s was added %d times, want once", id, n)
			}
		}
	}
}

// TestLegsAtOnce shows that if the legs of a call are uploaded concurrently, each of them completes
// one waiting recording.
func TestLegsAtOnce(t *testing.T) { EachDatabase(t, testLegsAtOnce) }

func testLegsAtOnce(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := context.Background()
	for range rounds {
		call := newID()
		var waiting sync.Map
		var uploads []func()
		for _, track := range recordings.Tracks {
			leg := recordings.Recording{ID: newID(), Sid: newID(), ProjectID: "p",
				Metadata: recordings.Metadata{CallSid: call, Track: track}, Created: time.Now()}
			leg.Waits = leg.Created.Add(time.Hour)
			if _, _, err := s.AddRecording(ctx, leg, recordings.Arrival{Identity: leg.ID}); err != nil {
				t.Fatal(err)
			}

			waiting.Store(leg.Sid, track)
			uploads = append(uploads, func() {
				r := recordings.Recording{ID: newID(), Sid: newID(), ProjectID: "p",
					Metadata: recordings.Metadata{CallSid: call}, Created: time.Now()}
				r.MediaKey = r.ID
				got, _, err := s.AddRecording(ctx, r, recordings.Arrival{Identity: r.ID, Given: r.Metadata})
				expect(t, "AddRecording", err)
				if _, waited := waiting.LoadAndDelete(got.Sid); !waited {
					t.Errorf("an upload created its own recording, or completed one that another upload had completed")
				}
			})
		}

		together(uploads...)
	}
}

// TestUploadForOwnCall shows that an upload for a call of this installation does not complete the
// recording that the installation makes itself. It becomes another recording.
func TestUploadForOwnCall(t *testing.T) { EachDatabase(t, testUploadForOwnCall) }

func testUploadForOwnCall(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	call := callAt("p", time.Now())
	saveCalls(t, s, call)
	add := func(r recordings.Recording, a recordings.Arrival) recordings.Recording {
		r.ID, r.Sid = newID(), cmp.Or(a.Sid, newID())
		r.ProjectID, r.Created = "p", time.Now()
		r.MediaKey, a.Identity = r.ID, r.ID
		if r.Waits.IsZero() {
			r.Status = recordings.Completed
		}
		kept, _, err := s.AddRecording(t.Context(), r, a)
		expect(t, "AddRecording", err)
		return kept
	}

	about := recordings.Metadata{CallSid: call.ID, Track: "both"}
	own := add(recordings.Recording{Metadata: about,
		Live: recordings.Live{Waits: time.Now().Add(time.Hour)}}, recordings.Arrival{})
	if got := add(recordings.Recording{Metadata: about}, recordings.Arrival{Given: about}); got.Sid == own.Sid {
		t.Error("an upload for the call replaced the recording that the server makes")
	}
	if got := add(recordings.Recording{}, recordings.Arrival{Sid: own.Sid, Late: true}); got.Sid != own.Sid ||
		!got.Waits.IsZero() {
		t.Errorf("the upload of the server's recorder = %s, waits %v, want %s", got.Sid, got.Waits, own.Sid)
	}
}

// TestRevocationsInOrder shows that revocations become visible in the order of their numbers. A
// reader that continues after the last number it has read misses none.
func TestRevocationsInOrder(t *testing.T) { EachDatabase(t, testRevocationsInOrder) }

func testRevocationsInOrder(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := context.Background()
	const writers, each = 10, 20
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				expect(t, "AddRevocation", s.AddRevocation(ctx, end(revocation.Token, fmt.Sprint(w, ".", i))))
			}
		})
	}

	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	seen := map[string]bool{}
	var seq int64
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}

		rows, at, err := s.RevocationsSince(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			seen[r.ID] = true
		}

		seq = at
	}

	if len(seen) != writers*each || seq != writers*each {
		t.Errorf("%d revocations seen, up to %d, want %d", len(seen), seq, writers*each)
	}
}

// TestDeleteAgainstChanges shows that concurrent deletions and changes do not deadlock, in any
// order.
func TestDeleteAgainstChanges(t *testing.T) { EachDatabase(t, testDeleteAgainstChanges) }

func testDeleteAgainstChanges(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := context.Background()
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

// TestAssignAgainstDelete shows that a call is never routed to a deleted resource. If a deletion
// and an assignment run concurrently, one of them fails.
func TestAssignAgainstDelete(t *testing.T) { EachDatabase(t, testAssignAgainstDelete) }

func testAssignAgainstDelete(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := context.Background()
	create := func(fields kinds.Values) (fabric.Resource, error) {
		r := fabric.Resource{ID: newID(), ProjectID: "p", Type: "swml_script", Fields: fields}
		return r, s.CreateResource(ctx, r,
			fabric.Address{ID: newID(), ProjectID: "p", ResourceID: r.ID, Name: r.ID}, nil)
	}

	for round := range rounds {
		target, err := create(nil)
		if err != nil {
			t.Fatal(err)
		}

		sip := fabric.SIPAddress{ID: newID(), ProjectID: "p", ResourceID: target.ID,
			Fields: kinds.Values{"name": []byte(fmt.Sprintf("%q", newID()))}}
		assign := []struct {
			name string
			do   func() error
		}{
			{"PutPhoneRoute", func() error {
				return s.PutPhoneRoute(ctx,
					fabric.PhoneRoute{ID: newID(), ProjectID: "p", Handler: "calling", ResourceID: target.ID})
			}},
			{"CreateSIPAddress", func() error { return s.CreateSIPAddress(ctx, sip) }},
			{"CreateResource", func() error {
				_, err := create(kinds.Values{"calling_handler_resource_id": []byte(fmt.Sprintf("%q", target.ID))})
				return err
			}},
		}[round%3]
		var assigned, deleted error
		together(func() { assigned = assign.do() }, func() {
			deleted = s.DeleteResource(ctx, "p", "swml_script", target.ID, revocation.Revocation{}, nil)
		})
		expect(t, assign.name, assigned, problem.NotFound)
		expect(t, "DeleteResource", deleted, problem.Conflict)
		if (assigned == nil) == (deleted == nil) {
			t.Errorf("round %d: %s = %v and DeleteResource = %v, want exactly one to succeed", round, assign.name,
				assigned, deleted)
		}
	}
}

// TestConsentsAtOnce shows that no consent is lost if several are given concurrently.
func TestConsentsAtOnce(t *testing.T) { EachDatabase(t, testConsentsAtOnce) }

func testConsentsAtOnce(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := context.Background()
	var all []func()
	for i := range 10 {
		all = append(all, func() {
			expect(t, "AddConsent", s.AddConsent(
				ctx, g.SubscriberID, g.ClientID, []string{"openid", fmt.Sprint("scope", i)}, time.Now()))
		})
	}

	together(all...)
	if agreed, err := s.FindConsent(ctx, g.SubscriberID, g.ClientID); err != nil || len(agreed) != 11 {
		t.Errorf("FindConsent = %v, %v, want 11 scopes", agreed, err)
	}
}
