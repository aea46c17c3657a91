package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/recordings"
)

// TestRetentionOfSubscriber shows that a retention rule names its subscriber by email, and that the
// preview counts recordings. If the subscriber is unknown, the form keeps what was typed.
func TestRetentionOfSubscriber(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	email := "ada@example.com"
	ada, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	at := "/dashboard/projects/" + w.one.ID + "/retention"

	wrong := b.post(at, at, url.Values{"days": {"7"}, "tag": {"sales"}, "subscriber": {"nobody@example.com"}})
	if wrong.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(wrong.body, "The project has no subscriber with this email or reference.") ||
		!strings.Contains(wrong.body, `value="nobody@example.com"`) || !strings.Contains(wrong.body, `value="sales"`) {
		t.Errorf("a rule for nobody returned %s, want 422 with the values", wrong.Status)
	}

	seen := b.post(at, at, url.Values{"days": {"7"}, "subscriber": {"ADA@example.com"}, "do": {"preview"}})
	if !strings.Contains(seen.body, "With this rule, 0 recordings (0 B) would be deleted now.") {
		t.Errorf("the preview returned %s, want 0 recordings", seen.Status)
	}
	for _, name := range []string{email, ada.ID} {
		b.post(at, at, url.Values{"days": {"7"}, "tag": {"of-" + name[:3]}, "subscriber": {name}}).leadsTo(t,
			at+"?done=ruleadded")
	}
	list := b.get(at).body
	if strings.Count(list, "Recordings of subscriber "+email) != 2 || strings.Contains(list, ada.ID) {
		t.Error("the rules do not name the subscriber")
	}
}

// TestAccessNames shows that the page of a recording names operators and keys that fetched it.
func TestAccessNames(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", ofAll)
	name := "billing"
	k, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	rec := w.record(w.one.ID, "call")
	for _, actor := range []string{"operator:" + o.ID, "key:" + k.ID, "key:gone", recordings.Anyone} {
		w.recordings.NoteAccess(t.Context(),
			recordings.Access{RecordingID: rec.ID, Actor: actor, Format: recordings.MP3})
	}

	page := b.get("/dashboard/projects/" + w.one.ID + "/recordings/" + rec.Sid).body
	for _, want := range []string{o.Title(), name, "key:gone", "anyone with the link"} {
		if !strings.Contains(page, `data-label="Client"><bdi>`+want+`</bdi>`) {
			t.Errorf("the latest accesses lack %q", want)
		}
	}
}
