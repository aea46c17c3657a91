package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestUpstreams shows that names of upstream providers and linked accounts are unique, and that
// links end with the provider.
func TestUpstreams(t *testing.T) { store.EachDatabase(t, testUpstreams) }

func testUpstreams(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	ctx := t.Context()
	now := time.UnixMicro(time.Now().UnixMicro())
	u := idp.Upstream{
		ID:               newID(),
		ProjectID:        p.ID,
		Name:             "Acme ID",
		Issuer:           "https://id.example/",
		ClientID:         "c",
		Secret:           "sealed",
		Enabled:          true,
		Created:          now,
		Updated:          now,
		UpstreamSettings: idp.UpstreamSettings{SignUp: true, Claims: map[string]string{"email": "mail"}},
	}
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}

	check("creating", s.CreateUpstream(ctx, u), nil)
	same := u
	same.ID = newID()
	other := u
	other.ID = newID()
	other.Name = "Other"
	check("the same name", s.CreateUpstream(ctx, same), problem.Conflict)
	check("a different name", s.CreateUpstream(ctx, other), nil)
	stray := u
	stray.ID = newID()
	stray.ProjectID = newID()
	check("an unknown project", s.CreateUpstream(ctx, stray), problem.NotFound)

	changed := u
	changed.Name = "New"
	changed.Updated = now.Add(time.Second)
	check("a stale update", s.UpdateUpstream(ctx, changed, now.Add(time.Minute)), problem.Conflict)
	check("an update", s.UpdateUpstream(ctx, changed, now), nil)
	changed.Name = other.Name
	check("an update to the same name", s.UpdateUpstream(ctx, changed, changed.Updated), problem.Conflict)
	got, err := s.FindUpstream(ctx, p.ID, u.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := u
	want.Name = "New"
	want.Updated = changed.Updated
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("FindUpstream (-want +got):\n%s", diff)
	}
	_, err = s.FindUpstream(ctx, newID(), u.ID)
	check("another project", err, problem.NotFound)

	ada, address := subscriber(p, "ada@example.com", "", "ada")
	if err := s.CreateSubscriber(ctx, ada, address); err != nil {
		t.Fatal(err)
	}

	link := func(subject, subscriberID string) idp.UpstreamLink {
		return idp.UpstreamLink{
			ID:           newID(),
			UpstreamID:   u.ID,
			ProjectID:    p.ID,
			SubscriberID: subscriberID,
			Issuer:       u.Issuer,
			Subject:      subject,
			Created:      now,
		}
	}

	created := race(t, problem.Conflict, func(int) error { return s.CreateUpstreamLink(ctx, link("1", ada.ID)) })
	if created != 1 {
		t.Errorf("%d links of one account were created, want 1", created)
	}

	check("an unknown subscriber", s.CreateUpstreamLink(ctx, link("2", newID())), problem.NotFound)
	_, err = s.FindUpstreamLink(ctx, u.ID, "https://other.example/", "1")
	check("the same subject at another issuer", err, problem.NotFound)
	linked, err := s.FindUpstreamLink(ctx, u.ID, u.Issuer, "1")
	if err != nil || linked.SubscriberID != ada.ID {
		t.Errorf("the link is to the subscriber %q, %v, want %s", linked.SubscriberID, err, ada.ID)
	}

	check("deleting", s.DeleteUpstream(ctx, p.ID, u.ID), nil)
	check("deleting again", s.DeleteUpstream(ctx, p.ID, u.ID), problem.NotFound)
	_, err = s.FindUpstreamLink(ctx, u.ID, u.Issuer, "1")
	check("the link of a deleted provider", err, problem.NotFound)
	left, err := s.ListUpstreams(ctx, p.ID, "", page.Query{Size: 10})
	if err != nil || len(left.Items) != 1 {
		t.Errorf("the list is %v, %v, want one provider", left.Items, err)
	}
}
