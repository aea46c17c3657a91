package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

// newWebhook creates a webhook in a project, for the given events.
func newWebhook(t *testing.T, s *store.Store, projectID string, events ...fabric.EventName) fabric.Webhook {
	t.Helper()
	w := fabric.Webhook{
		ID:        newID(),
		ProjectID: projectID,
		URL:       "https://example.com/",
		Events:    events,
		Enabled:   true,
		Created:   time.Now(),
		Updated:   time.UnixMicro(time.Now().UnixMicro()),
	}
	if err := s.CreateWebhook(t.Context(), w, 50); err != nil {
		t.Fatal(err)
	}
	return w
}

// pendingEvents returns the names of the events that are pending for a webhook, oldest first.
func pendingEvents(t *testing.T, s *store.Store, w fabric.Webhook) (names []string) {
	t.Helper()
	found, err := s.ListDeliveries(t.Context(), w.ID, "", page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Backward(found.Items) {
		names = append(names, string(d.Event))
		if d.State != fabric.Pending {
			t.Errorf("the delivery %s is %s, want %s", d.ID, d.State, fabric.Pending)
		}
		body := string(d.Body)
		if !strings.Contains(body, `"id":"`+d.ID+`"`) {
			t.Errorf("the body of the delivery %s is %s, want it to contain the id", d.ID, body)
		}
		if !strings.Contains(body, d.Subject) {
			t.Errorf("the body of the delivery %s is %s, want it to contain the subject %s", d.ID, body, d.Subject)
		}
	}
	return names
}

// event returns an event that happens now.
func event(name fabric.EventName, projectID, subject string) fabric.Event {
	id := newID()
	return fabric.Event{
		ID:        id,
		ProjectID: projectID,
		Name:      name,
		Subject:   subject,
		Created:   time.Now(),
		Body:      []byte(fmt.Sprintf(`{"id":"%s","of":"%s"}`, id, subject)),
	}
}

// tell returns a function that returns the event of a resource.
func tell(name fabric.EventName) fabric.Teller {
	return func(r fabric.Resource) (fabric.Event, error) { return event(name, r.ProjectID, r.ID), nil }
}

// causeEvents creates, changes and deletes a subscriber and a resource. This causes six events.
func causeEvents(t *testing.T, s *store.Store, p fabric.Project) {
	t.Helper()
	ctx := t.Context()
	sub, address := subscriber(p, newID()+"@example.com", "", newID())
	if err := s.CreateSubscriber(ctx, sub, address); err != nil {
		t.Fatal(err)
	}
	name := "Ada"
	update := fabric.SubscriberChange{Profile: fabric.Profile{FirstName: &name}}
	if _, err := s.UpdateSubscriber(ctx, p.ID, sub.ID, update, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	end := revocation.Revocation{
		Kind:    revocation.Subscriber,
		ID:      sub.ID,
		Until:   time.Now(),
		Expires: time.Now().Add(time.Hour),
	}
	if err := s.DeleteSubscriber(ctx, p.ID, end); err != nil {
		t.Fatal(err)
	}

	r := fabric.Resource{
		ID:        newID(),
		ProjectID: p.ID,
		Type:      "swml_script",
		Fields:    kinds.Values{},
		Created:   time.Now(),
		Updated:   time.UnixMicro(time.Now().UnixMicro()),
	}
	ofResource := fabric.Address{
		ID:         newID(),
		ProjectID:  p.ID,
		ResourceID: r.ID,
		Name:       newID(),
	}
	if err := s.CreateResource(ctx, r, ofResource, tell(fabric.ResourceCreated)); err != nil {
		t.Fatal(err)
	}
	old := r.Updated
	r.Updated = old.Add(time.Second)
	if err := s.UpdateResource(ctx, r, old, tell(fabric.ResourceUpdated)); err != nil {
		t.Fatal(err)
	}
	err := s.DeleteResource(ctx, p.ID, r.Type, r.ID, revocation.Revocation{}, tell(fabric.ResourceDeleted))
	if err != nil {
		t.Fatal(err)
	}
}

func TestEvents(t *testing.T) { store.EachDatabase(t, testEvents) }

func testEvents(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	other := newProject(t, s)
	all := newWebhook(t, s, p.ID, fabric.AnyEvent)
	some := newWebhook(t, s, p.ID, fabric.SubscriberDeleted, fabric.ResourceCreated)
	foreign := newWebhook(t, s, other.ID, fabric.AnyEvent)
	off := newWebhook(t, s, p.ID, fabric.AnyEvent)
	off.Enabled = false
	if err := s.UpdateWebhook(t.Context(), off, off.Updated); err != nil {
		t.Fatal(err)
	}

	causeEvents(t, s, p)
	for _, tt := range []struct {
		name    string
		webhook fabric.Webhook
		want    string
	}{
		{
			name:    "all",
			webhook: all,
			want: "subscriber.created subscriber.updated subscriber.deleted " +
				"resource.created resource.updated resource.deleted",
		},
		{name: "some", webhook: some, want: "subscriber.deleted resource.created"},
		{name: "of another project", webhook: foreign, want: ""},
		{name: "off", webhook: off, want: ""},
	} {
		if got := strings.Join(pendingEvents(t, s, tt.webhook), " "); got != tt.want {
			t.Errorf("%s: the pending events are %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRefusedChange shows that a failed change sends no event.
func TestRefusedChange(t *testing.T) { store.EachDatabase(t, testRefusedChange) }

func testRefusedChange(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	sub, address := subscriber(p, "ada@example.com", "", "ada")
	if err := s.CreateSubscriber(t.Context(), sub, address); err != nil {
		t.Fatal(err)
	}

	again, address := subscriber(p, "ada@example.com", "", "ada2")
	if err := s.CreateSubscriber(t.Context(), again, address); !errors.Is(err, problem.Conflict) {
		t.Errorf("CreateSubscriber of an email in use = %v, want Conflict", err)
	}
	other := newProject(t, s)
	err := s.DeleteSubscriber(t.Context(), other.ID, revocation.Revocation{ID: sub.ID})
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("DeleteSubscriber of another project = %v, want NotFound", err)
	}

	if got := pendingEvents(t, s, w); len(got) != 1 {
		t.Errorf("the pending events are %v, want only the creation", got)
	}
}
