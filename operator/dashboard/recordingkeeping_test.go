package dashboard_test

import (
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
	wrong.wantRefused(t, "The project has no subscriber with this email or reference.",
		`value="nobody@example.com"`, `value="sales"`)

	preview := b.post(at, at, url.Values{"days": {"7"}, "subscriber": {"ADA@example.com"}, "do": {"preview"}})
	preview.wantText(t, "With this rule, 0 recordings (0 B) would be deleted now.")

	for tag, name := range map[string]string{"by-email": email, "by-id": ada.ID} {
		rule := url.Values{"days": {"7"}, "tag": {tag}, "subscriber": {name}}
		b.post(at, at, rule).leadsTo(t, at+"?done=ruleadded")
	}
	list := b.get(at)
	list.wantNoText(t, ada.ID)
	if n := strings.Count(list.body, "Recordings of subscriber "+email); n != 2 {
		t.Errorf("the list has %d rules that name the subscriber, want 2", n)
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

	page := b.get("/dashboard/projects/" + w.one.ID + "/recordings/" + rec.Sid)
	for _, client := range []string{o.Title(), name, "key:gone", "anyone with the link"} {
		page.wantText(t, `data-label="Client"><bdi>`+client+`</bdi>`)
	}
}
