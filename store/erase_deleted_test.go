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
	"github.com/selvage/selvage/recordings"
)

// eraseDeleted erases a subscriber that was deleted before, and fails the test unless exactly one
// name is erased.
func eraseDeleted(t *testing.T, s *Store, req fabric.ErasureRequest) fabric.Erasure {
	t.Helper()
	erasure, err := s.EraseSubscriber(t.Context(), "p", req, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if erasure.Found {
		t.Error("EraseSubscriber finds a subscriber that was deleted before")
	}
	if n := erasure.Deleted["names"]; n != 1 {
		t.Errorf("EraseSubscriber deletes %d names, want 1", n)
	}
	return erasure
}

// addCanary creates a subscriber with an email and a profile.
func addCanary(t *testing.T, s *Store) fabric.Subscriber {
	t.Helper()
	now := time.Now()
	sub := fabric.Subscriber{
		ID:           newID(),
		ProjectID:    "p",
		Email:        "canary@example.com",
		PasswordHash: "hash",
		Person:       fabric.Person{FirstName: "Canary", JobTitle: "canary", CompanyName: "Canary's"},
		Created:      now,
		Updated:      now,
	}
	createWithAddress(t, s, sub)
	return sub
}

// createWithAddress creates a subscriber, and an address that has the subscriber's id as its name.
func createWithAddress(t *testing.T, s *Store, sub fabric.Subscriber) {
	t.Helper()
	address := fabric.Address{
		ID:         newID(),
		ProjectID:  "p",
		ResourceID: sub.ID,
		Type:       fabric.TypeSubscriber,
		Context:    fabric.Private,
		Name:       sub.ID,
		Created:    time.Now(),
	}
	if err := s.CreateSubscriber(t.Context(), sub, address); err != nil {
		t.Fatal(err)
	}
}

func deleteSubscriber(t *testing.T, s *Store, id string) {
	t.Helper()
	if err := s.DeleteSubscriber(t.Context(), "p", erasureOf(id).Revocation); err != nil {
		t.Fatal(err)
	}
}

// addCallFrom adds a recording of a call from the given party.
func addCallFrom(t *testing.T, s *Store, from string) {
	t.Helper()
	rec := recordings.Recording{
		ID:        newID(),
		Sid:       newID(),
		ProjectID: "p",
		Bytes:     10,
		Created:   time.Now(),
		Metadata:  recordings.Metadata{From: from, To: "/private/bob"},
	}
	if _, _, err := s.AddRecording(t.Context(), rec, recordings.Arrival{Identity: rec.ID}); err != nil {
		t.Fatal(err)
	}
}

// eraseMentions adds a recording and a saved filter that only mention the email of addCanary. Then
// it erases a subscriber that was deleted before, and reports whether the mentions are erased.
func eraseMentions(t *testing.T, s *Store, id string) bool {
	t.Helper()
	addCallFrom(t, s, "Canary@example.com")
	if err := saveSearch(t, s, "Calls of canary@example.com", "held=yes", 20); err != nil {
		t.Fatal(err)
	}

	erasure := eraseDeleted(t, s, erasureOf(id))
	recs, filters := erasure.Anonymized["recordings"], erasure.Deleted["recording_filters"]
	if recs != filters {
		t.Errorf("%d recordings and %d filters are erased, want the same number", recs, filters)
	}
	return recs == 1
}

func TestEraseDeleted(t *testing.T) { EachDatabase(t, testEraseDeleted) }

// testEraseDeleted shows that the erasure of a subscriber that was deleted before removes the
// subscriber's email and profile everywhere, even from the unsent event about the deletion.
func testEraseDeleted(t *testing.T, c Config) {
	s := operatorRows(t, c)
	hook := fabric.Webhook{
		ID:        newID(),
		ProjectID: "p",
		URL:       "https://hook.example/",
		Events:    []fabric.EventName{"*"},
		Enabled:   true,
		Created:   time.Now(),
		Updated:   time.Now(),
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 1 {
		t.Fatalf("%d deliveries remain, want one about the deletion", len(jobs))
	}
	job := jobs[0]
	if job.Event != string(fabric.SubscriberDeleted) {
		t.Errorf("the delivery is of the event %q, want %q", job.Event, fabric.SubscriberDeleted)
	}

	var event struct {
		ID   string
		Data fabric.SubscriberDocument
	}
	if err := json.Unmarshal(job.Body, &event); err != nil {
		t.Fatalf("the event is %s: %v", job.Body, err)
	}
	if event.ID != job.ID {
		t.Errorf("the event has the id %q, want that of the delivery, %s", event.ID, job.ID)
	}
	if got := event.Data.Subscriber.ID; got != sub.ID {
		t.Errorf("the event is about the subscriber %q, want %s", got, sub.ID)
	}
	if got, want := event.Data.CreatedAt, sub.Created.UTC().Format(time.RFC3339); got != want {
		t.Errorf("the subscriber of the event was created at %q, want %s", got, want)
	}
	if same, err := fabric.Nameless(job.Body); err != nil || !bytes.Equal(same, job.Body) {
		t.Errorf("Nameless changes %s to %s, %v, want no change", job.Body, same, err)
	}
}

func TestEraseEmailOfAnother(t *testing.T) { EachDatabase(t, testEraseEmailOfAnother) }

// testEraseEmailOfAnother shows that the erasure of a deleted subscriber does not erase mentions of
// an email that another subscriber has now.
func testEraseEmailOfAnother(t *testing.T, c Config) {
	s := operatorRows(t, c)
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
		if _, err := s.EraseSubscriber(t.Context(), "p", erasureOf(second.ID), time.Now()); err != nil {
			t.Fatal(err)
		}
		if ids := findDeletedNamed(t, s, "p", "canary@example.com"); len(ids) > 0 {
			t.Errorf("the names of %v are kept, want none", ids)
		}
		wantNoCanary(t, s, c.URL)

		name, err := s.FindDeletedName(t.Context(), "p", first.ID)
		if err != nil || name != "" {
			t.Errorf("the name of the first account: %q, %v, want an empty name", name, err)
		}
		if ids := findDeletedNamed(t, s, "p", ""); len(ids) > 0 {
			t.Errorf("an empty name finds %v, want none", ids)
		}
		eraseDeleted(t, s, erasureOf(first.ID))
		if _, err := s.FindDeletedName(t.Context(), "p", first.ID); !errors.Is(err, problem.NotFound) {
			t.Errorf("the first account after its erasure: %v, want not found", err)
		}
	}
	if _, err := s.FindDeletedName(t.Context(), "p", "s"); err != nil {
		t.Errorf("the name of another deleted subscriber: %v, want no error", err)
	}
}

func TestEraseNamesake(t *testing.T) { EachDatabase(t, testEraseNamesake) }

// testEraseNamesake shows that the erasure of a deleted subscriber finds recordings by the
// subscriber's reference, but not by the full name, which others may have, too.
func testEraseNamesake(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	now := time.Now()
	for _, tt := range []struct {
		name   string // what the recording calls the subscriber
		sub    fabric.Subscriber
		erased int64 // recordings in which the name is erased
	}{
		{
			name:   "canary-7",
			sub:    fabric.Subscriber{Reference: "canary-7"},
			erased: 1,
		},
		{
			name: "Canary Bird",
			sub:  fabric.Subscriber{Person: fabric.Person{FirstName: "Canary", LastName: "Bird"}},
		},
		{
			name: "Canary @ Home",
			sub:  fabric.Subscriber{Person: fabric.Person{FirstName: "Canary", LastName: "@ Home"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sub := tt.sub
			sub.ID, sub.ProjectID = newID(), "p"
			sub.Created, sub.Updated = now, now
			createWithAddress(t, s, sub)
			deleteSubscriber(t, s, sub.ID)
			addCallFrom(t, s, tt.name)

			req := erasureOf(sub.ID)
			namesOf := req.Names
			req.Names = func(sub fabric.Subscriber, addresses []fabric.Address) (lower []string) {
				for _, name := range namesOf(sub, addresses) {
					lower = append(lower, strings.ToLower(name))
				}
				return lower
			}
			if n := eraseDeleted(t, s, req).Anonymized["recordings"]; n != tt.erased {
				t.Errorf("the name is erased in %d recordings, want %d", n, tt.erased)
			}
		})
	}
}

func TestEraseRestored(t *testing.T) { EachDatabase(t, testEraseRestored) }

// testEraseRestored shows that a subscriber that was deleted and created again with the same id is
// erased only if the erasure is not limited to deleted subscribers.
func testEraseRestored(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := addCanary(t, s)
	deleteSubscriber(t, s, sub.ID)
	createWithAddress(t, s, sub)

	req := erasureOf(sub.ID)
	req.OnlyDeleted = true
	if _, err := s.EraseSubscriber(t.Context(), "p", req, time.Now()); !errors.Is(err, problem.Conflict) {
		t.Errorf("erasing a restored subscriber: %v, want a conflict", err)
	}
	if _, err := s.FindSubscriber(t.Context(), "p", sub.ID); err != nil {
		t.Errorf("finding the restored subscriber: %v", err)
	}
	erasure, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !erasure.Found {
		t.Error("EraseSubscriber without OnlyDeleted does not find the restored subscriber")
	}
	wantNoCanary(t, s, c.URL)
}
