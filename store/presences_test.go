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
	if wants, err := s.WantsPresence(ctx, p.ID); wants || err != nil {
		t.Errorf("WantsPresence without a webhook = %v, %v, want false", wants, err)
	}
	newWebhook(t, s, p.ID, fabric.SubscriberCreated)
	if wants, err := s.WantsPresence(ctx, p.ID); wants || err != nil {
		t.Errorf("WantsPresence of a webhook for other events = %v, %v, want false", wants, err)
	}
	newWebhook(t, s, p.ID, fabric.SubscriberOffline, fabric.SubscriberOnline)
	if wants, err := s.WantsPresence(ctx, p.ID); !wants || err != nil {
		t.Errorf("WantsPresence = %v, %v, want true", wants, err)
	}
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
	won, errs := race(func(int) (bool, error) {
		e := online
		e.ID = newID()
		err := s.ReportPresence(ctx, reported, time.Now(), &e)
		return err == nil, err
	})
	if won != 1 {
		t.Errorf("ReportPresence: %d of %d won, want 1", won, crowd)
	}

	for _, err := range errs {
		if !errors.Is(err, problem.Conflict) {
			t.Errorf("ReportPresence = %v, want a conflict", err)
		}
	}

	if d, err := s.ListDeliveries(ctx, w.ID, "", page.Query{Size: 10}); err != nil || len(d.Items) != 1 {
		t.Errorf("%d deliveries, %v, want the winner's", len(d.Items), err)
	}

	if got, err := s.FindReported(ctx, ada.ID); got != reported || err != nil {
		t.Errorf("FindReported = %+v, %v, want %+v", got, err, reported)
	}
	if err := s.ForgetPresences(ctx, p.ID); err != nil {
		t.Error(err)
	}
	if got, err := s.FindReported(ctx, ada.ID); got != (fabric.ReportedPresence{}) || err != nil {
		t.Errorf("FindReported after ForgetPresences = %+v, %v, want nothing", got, err)
	}
}

func TestPresenceOfUnknown(t *testing.T) { store.EachDatabase(t, testPresenceOfUnknown) }

func testPresenceOfUnknown(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	if got, err := s.FindReported(ctx, newID()); got != (fabric.ReportedPresence{}) || err != nil {
		t.Errorf("FindReported of an unknown subscriber = %+v, %v, want nothing", got, err)
	}
	stranger := fabric.ReportedPresence{SubscriberID: newID(), ProjectID: p.ID, Version: 1}
	if err := s.ReportPresence(ctx, stranger, time.Now(), nil); !errors.Is(err, problem.NotFound) {
		t.Errorf("ReportPresence of an unknown subscriber = %v, want not found", err)
	}
}

func TestDuePresences(t *testing.T) { store.EachDatabase(t, testDuePresences) }

// testDuePresences shows that online subscribers are checked periodically, and offline subscribers
// never.
func testDuePresences(t *testing.T, c store.Config) {
	ctx, now := t.Context(), time.Now()
	s, p := fabricRows(t, c)
	ada, a := subscriber(p, "ada@example.com", "", "ada")
	reported := fabric.ReportedPresence{SubscriberID: ada.ID, ProjectID: p.ID, Online: true, Version: 1}
	if err := errors.Join(s.CreateSubscriber(ctx, ada, a), s.ReportPresence(ctx, reported, now, nil)); err != nil {
		t.Fatal(err)
	}

	for _, want := range []int{1, 0} { // the first call postpones the next check
		if due, err := s.DuePresences(ctx, now, now.Add(time.Minute), 10); len(due) != want || err != nil {
			t.Errorf("DuePresences = %+v, %v, want %d", due, err, want)
		}
	}

	reported.Online, reported.Version = false, 2
	if err := s.ReportPresence(ctx, reported, now, nil); err != nil {
		t.Error(err)
	}
	if due, err := s.DuePresences(ctx, now.Add(time.Hour), now, 10); len(due) != 0 || err != nil {
		t.Errorf("DuePresences of an offline subscriber = %+v, %v, want none", due, err)
	}
}
