package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

func TestWantsPresence(t *testing.T) { store.EachDatabase(t, testWantsPresence) }

// testWantsPresence shows that a project wants presence events once it has a webhook for them.
func testWantsPresence(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	wantPresence := func(when string, want bool) {
		t.Helper()
		got, err := s.WantsPresence(ctx, p.ID)
		if err != nil || got != want {
			t.Errorf("WantsPresence %s = %v, %v, want %v", when, got, err, want)
		}
	}

	wantPresence("without a webhook", false)
	newWebhook(t, s, p.ID, fabric.SubscriberCreated)
	wantPresence("with a webhook for other events", false)
	newWebhook(t, s, p.ID, fabric.SubscriberOffline, fabric.SubscriberOnline)
	wantPresence("with a webhook for presence events", true)
}

func TestReportPresence(t *testing.T) { store.EachDatabase(t, testReportPresence) }

// testReportPresence shows that if several nodes report the same version concurrently, one succeeds
// and its event is delivered. The report is kept until it is deleted.
func testReportPresence(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.SubscriberOffline, fabric.SubscriberOnline)
	ada, a := subscriber(p, "ada@example.com", "", "ada")
	if err := s.CreateSubscriber(ctx, ada, a); err != nil {
		t.Fatal(err)
	}

	online := event(fabric.SubscriberOnline, p.ID, ada.ID)
	reported := fabric.ReportedPresence{SubscriberID: ada.ID, ProjectID: p.ID, Online: true, Version: 1}
	won := race(t, problem.Conflict, func(int) error {
		e := online
		e.ID = newID()
		return s.ReportPresence(ctx, reported, time.Now(), &e)
	})
	if won != 1 {
		t.Errorf("%d of %d concurrent reports succeeded, want 1", won, crowd)
	}

	sent, err := s.ListDeliveries(ctx, w.ID, "", page.Query{Size: 10})
	if err != nil || len(sent.Items) != 1 {
		t.Errorf("there are %d deliveries, %v, want only that of the successful report", len(sent.Items), err)
	}

	wantReported(t, s, ada.ID, reported)
	if err := s.ForgetPresences(ctx, p.ID); err != nil {
		t.Error(err)
	}
	wantReported(t, s, ada.ID, fabric.ReportedPresence{})
}

// wantReported fails the test unless the last report about a subscriber is want. The zero value
// means that nothing was reported.
func wantReported(t *testing.T, s *store.Store, subscriberID string, want fabric.ReportedPresence) {
	t.Helper()
	got, err := s.FindReported(t.Context(), subscriberID)
	if err != nil || got != want {
		t.Errorf("FindReported = %+v, %v, want %+v", got, err, want)
	}
}

func TestPresenceOfUnknown(t *testing.T) { store.EachDatabase(t, testPresenceOfUnknown) }

func testPresenceOfUnknown(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	wantReported(t, s, newID(), fabric.ReportedPresence{})
	stranger := fabric.ReportedPresence{SubscriberID: newID(), ProjectID: p.ID, Version: 1}
	if err := s.ReportPresence(ctx, stranger, time.Now(), nil); !errors.Is(err, problem.NotFound) {
		t.Errorf("ReportPresence of an unknown subscriber = %v, want not found", err)
	}
}

func TestDuePresences(t *testing.T) { store.EachDatabase(t, testDuePresences) }

// testDuePresences shows that online subscribers are checked periodically, and offline subscribers
// never.
func testDuePresences(t *testing.T, c store.Config) {
	ctx := t.Context()
	now := time.Now()
	s, p := fabricRows(t, c)
	ada, a := subscriber(p, "ada@example.com", "", "ada")
	reported := fabric.ReportedPresence{SubscriberID: ada.ID, ProjectID: p.ID, Online: true, Version: 1}
	if err := s.CreateSubscriber(ctx, ada, a); err != nil {
		t.Fatal(err)
	}
	if err := s.ReportPresence(ctx, reported, now, nil); err != nil {
		t.Fatal(err)
	}

	for _, want := range []int{1, 0} { // the first call postpones the next check
		due, err := s.DuePresences(ctx, now, now.Add(time.Minute), 10)
		if err != nil || len(due) != want {
			t.Errorf("DuePresences = %+v, %v, want %d presences", due, err, want)
		}
	}

	reported.Online = false
	reported.Version = 2
	if err := s.ReportPresence(ctx, reported, now, nil); err != nil {
		t.Error(err)
	}
	due, err := s.DuePresences(ctx, now.Add(time.Hour), now, 10)
	if err != nil || len(due) != 0 {
		t.Errorf("DuePresences of an offline subscriber = %+v, %v, want none", due, err)
	}
}
