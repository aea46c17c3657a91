package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// TestBulk shows that a change of several rows requires a confirmation, and then changes exactly
// these rows.
func TestBulk(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	list := "/dashboard/projects/" + w.one.ID + "/subscribers"
	one := w.newSubscriber(t, "a@example.com")
	two := w.newSubscriber(t, "b@example.com")
	other := w.newSubscriber(t, "c@example.com")

	chosen := url.Values{"id": {one, two, two}, "do": {"disable"}}
	asked := b.post(list, list+"/bulk", chosen)
	asked.wantStatus(t, http.StatusOK)
	asked.wantText(t, "a@example.com")
	asked.wantNoText(t, "c@example.com")
	for _, id := range []string{one, two, other} {
		w.wantDisabled(t, w.one.ID, id, false)
	}

	chosen.Set("confirm", "yes")
	b.post(list, list+"/bulk", chosen).leadsTo(t, list+"?done=subscribersdisabled&n=2&refused=0")
	w.wantDisabled(t, w.one.ID, one, true)
	w.wantDisabled(t, w.one.ID, two, true)
	w.wantDisabled(t, w.one.ID, other, false)
}

func (w *world) wantDisabled(t *testing.T, projectID, subscriberID string, want bool) {
	t.Helper()
	s, err := w.fabric.Subscribers.Find(t.Context(), projectID, subscriberID)
	must(t, err)
	if s.Disabled != want {
		t.Errorf("subscriber %s: disabled is %t, want %t", s.Email, s.Disabled, want)
	}
}

// TestBulkForeign shows that a bulk change ignores the rows of other projects.
func TestBulkForeign(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	list := "/dashboard/projects/" + w.one.ID + "/subscribers"
	own := w.newSubscriber(t, "a@example.com")
	foreign, err := w.fabric.Subscribers.Create(t.Context(), w.two.ID,
		fabric.SubscriberInput{Email: new("d@example.com")})
	must(t, err)

	chosen := url.Values{"id": {own, foreign.ID}, "do": {"disable"}}
	b.post(list, list+"/bulk", chosen).wantNoText(t, "d@example.com")
	chosen.Set("confirm", "yes")
	b.post(list, list+"/bulk", chosen).leadsTo(t, list+"?done=subscribersdisabled&n=1&refused=0")
	w.wantDisabled(t, w.two.ID, foreign.ID, false)
}

// TestBulkRecordings shows that a confirmed bulk deletion deletes the media of the selected
// recordings.
func TestBulkRecordings(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	list := "/dashboard/projects/" + w.one.ID + "/recordings"
	r := w.record(w.one.ID, "a-call")
	b.post(list, list+"/bulk", url.Values{"id": {r.Sid}, "confirm": {"yes"}}).
		leadsTo(t, list+"?done=recordingsdeleted&n=1&refused=0")

	found, err := w.recordings.Find(t.Context(), recordings.Owner{ProjectID: w.one.ID}, r.Sid)
	if err == nil && found.HasMedia() {
		t.Error("a deleted recording has media")
	}
}

// TestBulkResult shows that the list shows how many rows were changed, and how many were not.
func TestBulkResult(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	b.get("/dashboard/projects/"+w.one.ID+"/subscribers?done=subscribersdisabled&n=2&refused=1").
		wantText(t, "Subscribers disabled: 2. 1 could not be changed.")
}

// TestBulkInvalid shows that a bulk change needs a selection and a known action.
func TestBulkInvalid(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	list := "/dashboard/projects/" + w.one.ID + "/subscribers"
	id := w.newSubscriber(t, "a@example.com")
	b.post(list, list+"/bulk", url.Values{"do": {"disable"}}).leadsTo(t, list+"?done=noneselected")
	b.post(list, list+"/bulk", url.Values{"id": {id}, "do": {"burn"}}).wantRefused(t)
}

// TestBulkLists shows that keys, clients, resources and operators are changed only after a
// confirmation, and only by operators who may change them. Each request also names a row that it
// must not change: one of another project or type, or the operator who sends it.
func TestBulkLists(t *testing.T) {
	w := newWorld(t)
	ctx, base := t.Context(), "/dashboard/projects/"+w.one.ID
	key, foreignKey := w.apiKey(t, w.one.ID), w.apiKey(t, w.two.ID)
	client, foreignClient := w.client(w.one.ID, "one", idp.SPA).ID, w.client(w.two.ID, "two", idp.SPA).ID
	room, subscriber := w.room("hall").ID, w.newSubscriber(t, "a@example.com")
	boss, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	other, _ := w.operator("other@example.com", operator.Membership{Role: operator.Viewer})
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})

	isRevoked := func(id string) bool {
		k, err := w.fabric.APIKeys.Find(ctx, w.one.ID, id)
		if errors.Is(err, problem.NotFound) {
			k, err = w.fabric.APIKeys.Find(ctx, w.two.ID, id)
		}
		must(t, err)
		return !k.Revoked.IsZero()
	}
	isDeletedClient := func(id string) bool {
		_, err := w.idp.Clients.Find(ctx, id)
		must(t, problem.IgnoreNotFound(err))
		return err != nil
	}
	isDeletedResource := func(id string) bool {
		_, err := w.fabric.Resources.FindThing(ctx, w.one.ID, id)
		must(t, problem.IgnoreNotFound(err))
		return err != nil
	}
	isDisabled := func(id string) bool {
		o, err := w.operators.Find(ctx, id)
		must(t, err)
		return o.Disabled
	}

	for _, tt := range []struct {
		path      string
		id        string
		kept      string // id of the row that must not change
		notice    string
		isChanged func(id string) bool
	}{
		{base + "/keys", key, foreignKey, "keysrevoked&n=1&refused=0", isRevoked},
		{base + "/clients", client, foreignClient, "clientsdeleted&n=1&refused=0", isDeletedClient},
		{base + "/resources", room, subscriber, "resourcesdeleted&n=1&refused=0", isDeletedResource},
		{"/dashboard/operators", other.ID, boss.ID, "operatorsdisabled&n=1&refused=1", isDisabled},
	} {
		form := url.Values{"id": {tt.id, tt.kept}}
		refused := viewer.post(tt.path, tt.path+"/bulk", form)
		if refused.StatusCode < 400 {
			t.Errorf("%s by a viewer, want a refusal", refused)
		}
		asked := b.post(tt.path, tt.path+"/bulk", form)
		asked.wantStatus(t, http.StatusOK)
		asked.wantText(t, `id="bulk-confirm"`)
		if tt.isChanged(tt.id) {
			t.Errorf("%s: the row is changed before the confirmation", tt.path)
		}

		form.Set("confirm", "yes")
		confirmed := b.post(tt.path, tt.path+"/bulk", form)
		confirmed.wantStatus(t, http.StatusSeeOther)
		if at := confirmed.Header.Get("Location"); !strings.HasSuffix(at, tt.notice) {
			t.Errorf("%s leads to %s, want %s", confirmed, at, tt.notice)
		}
		if !tt.isChanged(tt.id) {
			t.Errorf("%s: the row is not changed after the confirmation", tt.path)
		}
		if tt.isChanged(tt.kept) {
			t.Errorf("%s: the row that must be kept is changed", tt.path)
		}
	}
}

// apiKey creates an API key of a project, and returns its id.
func (w *world) apiKey(t *testing.T, projectID string) (id string) {
	t.Helper()
	in := fabric.APIKeyInput{Name: new("key"), Scopes: []fabric.Scope{fabric.Voice}}
	k, _, err := w.fabric.APIKeys.Create(t.Context(), projectID, in, nil)
	must(t, err)
	return k.ID
}
