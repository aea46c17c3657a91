package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/recordings"
)

func TestDeletedNames(t *testing.T) { EachDatabase(t, testDeletedNames) }

// testDeletedNames shows that the name of a deleted subscriber is kept in its project until the
// subscriber is erased, or ForgetDeletedNames deletes the name.
func testDeletedNames(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, sub := t.Context(), plantCanary(t, s)
	if _, err := s.FindDeletedName(ctx, "p", sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("a name before the deletion: %v, want not found", err)
	}
	end := revocation.Revocation{Kind: revocation.Subscriber, ID: sub.ID, Until: time.Now().Add(time.Hour),
		Expires: time.Now().Add(time.Hour)}
	if err := s.DeleteSubscriber(ctx, "p", end); err != nil {
		t.Fatal(err)
	}

	kept := func(want string) {
		t.Helper()
		name, err := s.FindDeletedName(ctx, "p", sub.ID)
		if name != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, problem.NotFound) {
			t.Errorf("FindDeletedName = %q, %v, want %q", name, err, want)
		}
		ids, err := s.FindDeletedNamed(ctx, "p", "Canary@Example.com", 10)
		if err != nil || len(ids) == 1 != (want != "") {
			t.Errorf("FindDeletedNamed = %v, %v, want the one with %q", ids, err, want)
		}
	}
	kept("canary@example.com")
	if _, err := s.FindDeletedName(ctx, "other", sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("the name in another project: %v, want not found", err)
	}
	if ids, err := s.FindDeletedNamed(ctx, "other", "canary@example.com", 10); err != nil || len(ids) > 0 {
		t.Errorf("by name in another project: %v, %v, want none", ids, err)
	}
	if _, err := s.EraseSubscriber(ctx, "other", eraser(sub.ID), time.Now()); !errors.Is(err, problem.NotFound) {
		t.Errorf("erased by another project: %v, want not found", err)
	}
	if err := s.ForgetDeletedNames(ctx, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	kept("canary@example.com")

	e, err := s.EraseSubscriber(ctx, "p", eraser(sub.ID), time.Now())
	if err != nil || e.Found || e.Deleted["names"] != 1 {
		t.Errorf("EraseSubscriber = %+v, %v, want one name", e, err)
	}
	kept("")

	if err := s.DeleteSubscriber(ctx, "p", revocation.Revocation{Kind: revocation.Subscriber, ID: "s",
		Until: end.Until, Expires: end.Expires}); err != nil {
		t.Fatal(err)
	}
	if name, err := s.FindDeletedName(ctx, "p", "s"); name == "" || err != nil {
		t.Fatalf("the name of another subscriber: %q, %v, want it kept", name, err)
	}
	if err := s.ForgetDeletedNames(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindDeletedName(ctx, "p", "s"); !errors.Is(err, problem.NotFound) {
		t.Errorf("the name after ForgetDeletedNames: %v, want not found", err)
	}
}

// addCanary creates a subscriber with an email and a profile.
func addCanary(t *testing.T, s *Store) fabric.Subscriber {
	t.Helper()
	id, now := newID(), time.Now()
	sub := fabric.Subscriber{ID: id, ProjectID: "p", Email: "canary@example.com", PasswordHash: "hash",
		Person:  fabric.Person{FirstName: "Canary", JobTitle: "canary", CompanyName: "Canary's"},
		Created: now, Updated: now}
	address := fabric.Address{ID: newID(), ProjectID: "p", ResourceID: id, Type: fabric.TypeSubscriber,
		Context: fabric.Private, Name: id, Created: now}
	if err := s.CreateSubscriber(t.Context(), sub, address); err != nil {
		t.Fatal(err)
	}
	return sub
}

func deleteSubscriber(t *testing.T, s *Store, id string) {
	t.Helper()
	if err := s.DeleteSubscriber(t.Context(), "p", eraser(id).Revocation); err != nil {
		t.Fatal(err)
	}
}

// eraseMentions adds a recording and a saved filter that only mention the email of addCanary, erases a
// subscriber that was deleted before, and reports whether the mentions are erased.
func eraseMentions(t *testing.T, s *Store, id string) bool {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	rec := recordings.Recording{ID: newID(), Sid: newID(), ProjectID: "p", Bytes: 10, Created: now,
		Metadata: recordings.Metadata{From: "Canary@example.com", To: "/private/bob"}}
	if _, _, err := s.AddRecording(ctx, rec, recordings.Arrival{Identity: rec.ID}); err != nil {
		t.Fatal(err)
	}
	if err := saveSearch(t, s, "Calls of canary@example.com", "held=yes", 20); err != nil {
		t.Fatal(err)
	}

	e, err := s.EraseSubscriber(ctx, "p", eraser(id), now)
	if err != nil || e.Found || e.Deleted["names"] != 1 ||
		e.Anonymised["recordings"] != e.Deleted["recording_filters"] {
		t.Errorf("EraseSubscriber = %+v, %v, want one name", e, err)
	}
	return e.Anonymised["recordings"] == 1
}

func TestEraseDeleted(t *testing.T) { EachDatabase(t, testEraseDeleted) }

// testEraseDeleted shows that the erasure of a subscriber that was deleted before removes its email
// and profile everywhere, even from the event of the deletion that has not been sent yet.
func testEraseDeleted(t *testing.T, c Config) {
	s := filtering(t, c)
	hook := fabric.Webhook{ID: newID(), ProjectID: "p", URL: "https://hook.example/",
		Events: []fabric.EventName{"*"}, Enabled: true, Created: time.Now(), Updated: time.Now()}
	if err := s.CreateWebhook(t.Context(), hook, 10); err != nil {
		t.Fatal(err)
	}
	sub := addCanary(t, s)
	deleteSubscriber(t, s, sub.ID)
	if !eraseMentions(t, s, sub.ID) {
		t.Error("a recording and a filter still mention the email")
	}
	wantNoCanary(t, s, c.URL)

	jobs, err := s.Webhooks.Queue().DueJobs(t.Context(), hook.ID, time.Now(), 10)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d deliveries remain, %v, want one about the deletion", len(jobs), err)
	}
	var event struct {
		ID   string
		Data fabric.SubscriberDocument
	}
	if err := json.Unmarshal(jobs[0].Body, &event); err != nil || event.ID != jobs[0].ID ||
		jobs[0].Event != string(fabric.SubscriberDeleted) || event.Data.Subscriber.ID != sub.ID ||
		event.Data.CreatedAt != sub.Created.UTC().Format(time.RFC3339) {
		t.Errorf("the event is %s, %v, want the deletion without the profile", jobs[0].Body, err)
	}
	if same, err := fabric.Nameless(jobs[0].Body); err != nil || !bytes.Equal(same, jobs[0].Body) {
		t.Errorf("Nameless changes %s to %s, %v", jobs[0].Body, same, err)
	}
}

func TestEraseEmailOfAnother(t *testing.T) { EachDatabase(t, testEraseEmailOfAnother) }

// testEraseEmailOfAnother shows that the erasure of a deleted subscriber does not erase mentions of
// an email that another subscriber has now.
func testEraseEmailOfAnother(t *testing.T, c Config) {
	s := filtering(t, c)
	sub := addCanary(t, s)
	deleteSubscriber(t, s, sub.ID)
	addCanary(t, s)
	if eraseMentions(t, s, sub.ID) {
		t.Error("a recording and a filter of another subscriber are erased")
	}
}

func TestEraseSecondAccount(t *testing.T) { EachDatabase(t, testEraseSecondAccount) }

// testEraseSecondAccount shows that an erasure also erases the kept names of earlier accounts with
// the same email. This does not depend on whether the last account was deleted before. The earlier
// accounts can still be erased.
func testEraseSecondAccount(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	deleteSubscriber(t, s, "s")
	for _, deleted := range []bool{false, true} {
		first := addCanary(t, s)
		deleteSubscriber(t, s, first.ID)
		second := addCanary(t, s)
		if deleted {
			deleteSubscriber(t, s, second.ID)
		}
		if _, err := s.EraseSubscriber(t.Context(), "p", eraser(second.ID), time.Now()); err != nil {
			t.Fatal(err)
		}
		ids, err := s.FindDeletedNamed(t.Context(), "p", "canary@example.com", 10)
		if err != nil || len(ids) > 0 {
			t.Errorf("the names of %v are kept, %v, want none", ids, err)
		}
		wantNoCanary(t, s, c.URL)

		if name, err := s.FindDeletedName(t.Context(), "p", first.ID); name != "" || err != nil {
			t.Errorf("the name of the first account: %q, %v, want an empty one", name, err)
		}
		if ids, err := s.FindDeletedNamed(t.Context(), "p", "", 10); err != nil || len(ids) > 0 {
			t.Errorf("an empty name finds %v, %v, want none", ids, err)
		}
		e, err := s.EraseSubscriber(t.Context(), "p", eraser(first.ID), time.Now())
		if err != nil || e.Found || e.Deleted["names"] != 1 {
			t.Errorf("erasing the first account: %+v, %v, want one name", e, err)
		}
		if _, err := s.FindDeletedName(t.Context(), "p", first.ID); !errors.Is(err, problem.NotFound) {
			t.Errorf("the first account after its erasure: %v, want not found", err)
		}
	}
	if _, err := s.FindDeletedName(t.Context(), "p", "s"); err != nil {
		t.Errorf("the name of another deleted subscriber: %v, want it kept", err)
	}
}

func TestEraseNamesake(t *testing.T) { EachDatabase(t, testEraseNamesake) }

// testEraseNamesake shows that the erasure of a deleted subscriber finds recordings by its reference,
// but not by its full name, which others may have, too.
func testEraseNamesake(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, now := t.Context(), time.Now()
	for name, sub := range map[string]fabric.Subscriber{
		"canary-7":      {Reference: "canary-7"},
		"Canary Bird":   {Person: fabric.Person{FirstName: "Canary", LastName: "Bird"}},
		"Canary @ Home": {Person: fabric.Person{FirstName: "Canary", LastName: "@ Home"}},
	} {
		sub.ID, sub.ProjectID = newID(), "p"
		sub.Created, sub.Updated = now, now
		address := fabric.Address{ID: newID(), ProjectID: "p", ResourceID: sub.ID, Type: fabric.TypeSubscriber,
			Context: fabric.Private, Name: sub.ID, Created: now}
		if err := s.CreateSubscriber(ctx, sub, address); err != nil {
			t.Fatal(err)
		}
		deleteSubscriber(t, s, sub.ID)
		rec := recordings.Recording{ID: newID(), Sid: newID(), ProjectID: "p", Bytes: 10, Created: now,
			Metadata: recordings.Metadata{From: name, To: "/private/bob"}}
		if _, _, err := s.AddRecording(ctx, rec, recordings.Arrival{Identity: rec.ID}); err != nil {
			t.Fatal(err)
		}

		by := eraser(sub.ID)
		plain := by.Names
		by.Names = func(sub fabric.Subscriber, all []fabric.Address) (lower []string) {
			for _, name := range plain(sub, all) {
				lower = append(lower, strings.ToLower(name))
			}
			return lower
		}
		e, err := s.EraseSubscriber(ctx, "p", by, now)
		if found := e.Anonymised["recordings"] == 1; err != nil || e.Deleted["names"] != 1 ||
			found != (sub.Reference != "") {
			t.Errorf("erasing %q: %+v, %v", name, e, err)
		}
	}
}

func TestEraseRestored(t *testing.T) { EachDatabase(t, testEraseRestored) }

// testEraseRestored shows that a subscriber that was deleted and created again with the same id is
// erased only if the erasure is not limited to deleted subscribers.
func testEraseRestored(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := addCanary(t, s)
	deleteSubscriber(t, s, sub.ID)
	address := fabric.Address{ID: newID(), ProjectID: "p", ResourceID: sub.ID, Type: fabric.TypeSubscriber,
		Context: fabric.Private, Name: sub.ID, Created: time.Now()}
	if err := s.CreateSubscriber(t.Context(), sub, address); err != nil {
		t.Fatal(err)
	}

	by := eraser(sub.ID)
	by.OnlyDeleted = true
	if _, err := s.EraseSubscriber(t.Context(), "p", by, time.Now()); !errors.Is(err, problem.Conflict) {
		t.Errorf("erasing a restored subscriber: %v, want a conflict", err)
	}
	if _, err := s.FindSubscriber(t.Context(), "p", sub.ID); err != nil {
		t.Errorf("finding the restored subscriber: %v", err)
	}
	if e, err := s.EraseSubscriber(t.Context(), "p", eraser(sub.ID), time.Now()); err != nil || !e.Found {
		t.Errorf("erasing it without OnlyDeleted: %+v, %v, want it found", e, err)
	}
	wantNoCanary(t, s, c.URL)
}
