package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/selvage/selvage/fabric"
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
