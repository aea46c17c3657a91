package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type deliveryBody struct {
	ID, Event, State string
	Attempts         int
	Status           *int
	Error            *string
	ResourceID       string `json:"resource_id"`
	Duration         *float64
	ResponseBody     *string   `json:"response_body"`
	Body             eventBody // only of a single delivery
}

type eventBody struct {
	ID, Event string
	CreatedAt string `json:"created_at"`
	ProjectID string `json:"project_id"`
	Data      json.RawMessage
}

// TestDeliveries shows that deliveries contain the same data as the API, without secrets.
func TestDeliveries(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	path := webhookPath + "/" + w.webhook(boss, `{"url":"https://example.com/"}`).ID + "/deliveries"
	r := w.call(w.basic(), "POST", subscribers,
		`{"email":"ada@example.com","password":"fathom-lantern-7","first_name":"<Ada>"}`)
	r.wantStatus(t, "creating a subscriber", http.StatusCreated)
	subscriber := as[envelope](t, r).ID
	r = w.call(w.basic(), "POST", resources+"/sip_endpoints", `{"username":"ada","password":"not to be told"}`)
	r.wantStatus(t, "creating a SIP endpoint", http.StatusCreated)
	endpoint := as[envelope](t, r).ID

	first := as[listed[deliveryBody]](t, w.call(boss, "GET", path+"?page_size=1&state=pending", ""))
	if len(first.Data) != 1 {
		t.Fatalf("the first page has %d deliveries, want 1", len(first.Data))
	}
	newest := first.Data[0]
	want := deliveryBody{ID: newest.ID, Event: "resource.created", State: "pending", ResourceID: endpoint}
	if diff := cmp.Diff(want, newest); diff != "" {
		t.Fatalf("the newest delivery (-want +got):\n%s", diff)
	}

	next, err := url.Parse(first.Links["next"])
	if err != nil {
		t.Fatal(err)
	}
	if state := next.Query().Get("state"); state != "pending" {
		t.Errorf("the next page is %s, want one with the state pending", next)
	}
	older := as[listed[deliveryBody]](t, w.call(boss, "GET", next.String(), "")).Data[0]

	w.wantDelivered(boss, path, newest.ID, endpoint)
	w.wantDelivered(boss, path, older.ID, subscriber)
}

// wantDelivered fails the test unless the delivery with the given id contains what the API shows of
// a resource.
func (w *world) wantDelivered(auth authorization, deliveries, id, resource string) {
	w.t.Helper()
	path := deliveries + "/" + id
	r := w.call(auth, "GET", path, "")
	r.wantNoText(w.t, "GET "+path, "fathom", "not to be told", "argon2", "password")
	got := as[deliveryBody](w.t, r)
	if got.ResourceID != resource {
		w.t.Errorf("GET %s: the resource is %s, want %s", path, got.ResourceID, resource)
	}
	if _, err := time.Parse(time.RFC3339, got.Body.CreatedAt); err != nil {
		w.t.Errorf("GET %s: created_at: %v", path, err)
	}

	shown := w.call(w.basic(), "GET", resources+"/"+resource, "").text
	want := eventBody{
		ID:        id,
		Event:     got.Event,
		CreatedAt: got.Body.CreatedAt,
		ProjectID: w.project.ID,
		Data:      json.RawMessage(strings.TrimSpace(shown)),
	}
	if diff := cmp.Diff(want, got.Body); diff != "" {
		w.t.Errorf("GET %s: the body (-want +got):\n%s", path, diff)
	}
	if data := as[envelope](w.t, reply{text: string(got.Body.Data)}); data.ID != resource {
		w.t.Errorf("GET %s: the id in the data is %s, want %s", path, data.ID, resource)
	}
}

// TestDeadDeliveries shows that the API shows the receiver's response only with a single delivery,
// and never shows the refused address.
func TestDeadDeliveries(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	hook := w.webhook(boss, `{"url":"https://example.com/"}`)
	path := webhookPath + "/" + hook.ID + "/deliveries"
	w.create(`{"email":"ada@example.com"}`)
	pending := as[listed[deliveryBody]](t, w.call(boss, "GET", path, "")).Data[0]
	w.create(`{"email":"bob@example.com"}`)

	w.giveUp(w.rows.Webhooks.Queue(), hook.ID, pending.ID, 9, 500)
	r := w.call(boss, "GET", path+"?state=dead", "")
	r.wantNoText(t, "GET of the dead letters", "10.9.8.7")
	dead := as[listed[deliveryBody]](t, r).Data
	if len(dead) != 1 {
		t.Fatalf("there are %d dead letters, want 1", len(dead))
	}
	status, duration := 500, 0.214
	want := deliveryBody{
		ID:         pending.ID,
		Event:      pending.Event,
		State:      "dead",
		Attempts:   9,
		Status:     &status,
		Error:      dead[0].Error,
		ResourceID: pending.ResourceID,
		Duration:   &duration,
	}
	if diff := cmp.Diff(want, dead[0]); diff != "" {
		t.Errorf("the dead letter (-want +got):\n%s", diff)
	}

	r = w.call(boss, "GET", path, "")
	r.wantNoText(t, "GET of all deliveries", "10.9.8.7")
	r = w.call(boss, "GET", path+"/"+pending.ID, "")
	r.wantNoText(t, "GET of the dead letter", "10.9.8.7")
	got := as[deliveryBody](t, r)
	if *got.ResponseBody != "<unknown>" {
		t.Errorf("GET of the dead letter: the response is %q, want <unknown>", *got.ResponseBody)
	}
	if *got.Duration != duration {
		t.Errorf("GET of the dead letter: the duration is %v, want %v", *got.Duration, duration)
	}
}

func TestTestDelivery(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	hook := w.webhook(boss, `{"url":"https://example.com/"}`)
	r := w.call(boss, "POST", webhookPath+"/"+hook.ID+"/test", "")
	r.wantStatus(t, "POST of a test", http.StatusAccepted)
	got := as[deliveryBody](t, r)
	if got.Event != "webhook.test" {
		t.Errorf("the event is %s, want webhook.test", got.Event)
	}
	if got.State != "pending" {
		t.Errorf("the state is %s, want pending", got.State)
	}
	if got.ResourceID != hook.ID {
		t.Errorf("the resource is %s, want the webhook %s", got.ResourceID, hook.ID)
	}
}

// TestRedeliver shows that a dead letter becomes pending again on request.
func TestRedeliver(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	hook := w.webhook(boss, `{"url":"https://example.com/"}`)
	w.create(`{"email":"ada@example.com"}`)
	path := webhookPath + "/" + hook.ID + "/deliveries"
	dead := as[listed[deliveryBody]](t, w.call(boss, "GET", path, "")).Data[0]
	w.giveUp(w.rows.Webhooks.Queue(), hook.ID, dead.ID, 9, 500)

	r := w.call(boss, "POST", path+"/"+dead.ID+"/redeliver", "")
	r.wantStatus(t, "POST of redeliver", http.StatusAccepted)
	got := as[deliveryBody](t, r)
	if got.State != "pending" {
		t.Errorf("the state is %s, want pending", got.State)
	}
	if got.Attempts != 0 {
		t.Errorf("there are %d attempts, want 0", got.Attempts)
	}
	if got.Status != nil {
		t.Errorf("the status is %d, want null", *got.Status)
	}
	if got.Duration != nil {
		t.Errorf("the duration is %v, want null", *got.Duration)
	}

	r = w.call(boss, "POST", path+"/redeliver", "")
	r.wantStatus(t, "POST of redeliver for all dead letters", http.StatusAccepted)
	if got := strings.TrimSpace(r.text); got != `{"redelivered":0}` {
		t.Errorf("POST of redeliver for all dead letters: got %s, want none redelivered", got)
	}
}
