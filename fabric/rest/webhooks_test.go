package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

const webhookPath = "/api/fabric/webhooks"

type webhook struct {
	ID, URL, Name string
	ProjectID     string `json:"project_id"`
	Events        []string
	Enabled       bool
}

type deliveryBody struct {
	ID, Event, State string
	Attempts         int
	Status           *int
	Error            *string
	ResourceID       string `json:"resource_id"`
	Duration         *float64
	ResponseBody     *string `json:"response_body"`
	Body             struct {
		ID, Event string
		CreatedAt string `json:"created_at"`
		ProjectID string `json:"project_id"`
		Data      json.RawMessage
	}
}

// manager returns credentials with only the scope Management.
func (w *world) manager() authorization {
	w.t.Helper()
	_, auth := w.newKey(time.Time{}, fabric.Management)
	return auth
}

func (w *world) webhook(auth authorization, body string) webhook {
	w.t.Helper()
	r := w.call(auth, "POST", webhookPath, body)
	if r.status != http.StatusCreated {
		w.t.Fatalf("POST %s with %s: got %d %s, want 201", webhookPath, body, r.status, r.text)
	}
	return as[webhook](w.t, r)
}

func TestWebhooks(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	created := w.webhook(boss, `{"url":"https://example.com/a?b=c","id":"x","project_id":"y","failures":7,
		"created_at":"2020-01-01T00:00:00Z"}`)
	path := webhookPath + "/" + created.ID
	if created.URL != "https://example.com/a?b=c" || created.ProjectID != w.project.ID ||
		strings.Join(created.Events, " ") != "*" || !created.Enabled || created.Name != "" {
		t.Errorf("created %+v, want all events, enabled", created)
	}

	r := w.call(boss, "PATCH", path,
		`{"events":["subscriber.created","subscriber.created","resource.deleted"],"name":"CRM"}`)
	if got := as[webhook](t, r); r.status != http.StatusOK || got.URL != created.URL || got.Name != "CRM" ||
		strings.Join(got.Events, " ") != "subscriber.created resource.deleted" {
		t.Errorf("PATCH: got %d %s, want 200 with the new name and two events", r.status, r.text)
	}

	r = w.call(boss, "PUT", path, `{"enabled":false}`)
	if got := as[webhook](t, r); r.status != http.StatusOK || got.Enabled || got.Name != "CRM" ||
		len(got.Events) != 2 {
		t.Errorf("PUT: got %d %s, want 200 with the webhook disabled", r.status, r.text)
	}

	if r := w.call(boss, "GET", webhookPath, ""); r.status != http.StatusOK ||
		!strings.Contains(r.text, created.ID) || !strings.Contains(r.text, `"links":{"self"`) {
		t.Errorf("GET: got %d %s, want 200 and the webhook", r.status, r.text)
	}

	if r := w.call(boss, "DELETE", path, ""); r.status != http.StatusNoContent {
		t.Errorf("DELETE: got %d %s, want 204", r.status, r.text)
	}
	if r := w.call(boss, "GET", path, ""); r.status != http.StatusNotFound {
		t.Errorf("GET after DELETE: got %d %s, want 404", r.status, r.text)
	}
}

func TestWebhookFaults(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	created := w.webhook(boss, `{"url":"https://example.com/"}`)
	for body, want := range map[string]string{
		`{}`:                              "url:missing_required_parameter",
		`{"url":""}`:                      "url:missing_required_parameter",
		`{"url":7,"name":7}`:              "url:invalid_parameter name:invalid_parameter",
		`{"url":"gopher://example.com/"}`: "url:not_an_http_url",
		`{"url":"http://10.0.0.1/"}`:      "url:url_is_unsafe",
		`{"url":"http://10.0.0.1/","name":"a\u0000b","events":["subscriber.made"]}`: "url:url_is_unsafe " +
			"name:invalid_parameter events:invalid_parameter",
		`{"url":"https://example.com/","events":"*"}`:    "events:invalid_parameter",
		`{"url":"https://example.com/","enabled":"yes"}`: "enabled:invalid_parameter",
		`{"url":"https://example.com/` +
			strings.Repeat("a", 2048) + `"}`: "url:invalid_parameter",
		`{"url":"https://example.com/","name":"` +
			strings.Repeat("a", 256) + `","events":[]}`: "name:invalid_parameter",
	} {
		if got := w.call(boss, "POST", webhookPath, body).faults(t); got != want {
			t.Errorf("POST %.80s: got %s, want %s", body, got, want)
		}
	}

	for body, want := range map[string]string{
		`{"url":""}`:              "url:missing_required_parameter",
		`{"url":"http://[::1]/"}`: "url:url_is_unsafe",
		`{"events":["x"]}`:        "events:invalid_parameter",
	} {
		if got := w.call(boss, "PATCH", webhookPath+"/"+created.ID, body).faults(t); got != want {
			t.Errorf("PATCH %s: got %s, want %s", body, got, want)
		}
	}

	got := w.call(boss, "GET", webhookPath+"/"+created.ID+"/deliveries?state=lost", "").faults(t)
	if got != "state:invalid_parameter" {
		t.Errorf("GET of an unknown state: got %s, want state:invalid_parameter", got)
	}

	for range 49 {
		w.webhook(boss, `{"url":"https://example.com/"}`)
	}

	got = w.call(boss, "POST", webhookPath, `{"url":"https://example.com/"}`).faults(t)
	if got != "url:invalid_parameter" {
		t.Errorf("a webhook beyond the limit: got %s, want url:invalid_parameter", got)
	}
}

// TestWebhookCredentials shows that credentials without the scope Management, and credentials of
// another project, cannot use webhooks.
func TestWebhookCredentials(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	created := w.webhook(boss, `{"url":"https://example.com/"}`)
	w.tokens(`{"reference":"ada"}`)
	path := webhookPath + "/" + created.ID
	id := as[struct{ Data []deliveryBody }](t, w.call(boss, "GET", path+"/deliveries", "")).Data[0].ID
	p, secret, _ := w.newProject("three", fabric.Management)
	foreign := func(r *http.Request) { r.SetBasicAuth(p.ID, secret) }
	for _, route := range []struct{ method, path, body string }{
		{"GET", webhookPath, ""}, {"POST", webhookPath, `{"url":"https://example.com/"}`},
		{"GET", path, ""}, {"PATCH", path, `{"name":"x"}`}, {"PUT", path, `{"name":"x"}`}, {"DELETE", path, ""},
		{"POST", path + "/test", ""}, {"GET", path + "/deliveries", ""}, {"GET", path + "/deliveries/" + id, ""},
		{"POST", path + "/deliveries/" + id + "/redeliver", ""}, {"POST", path + "/deliveries/redeliver", ""},
		{"GET", webhookPath + "/signing_key", ""}, {"POST", webhookPath + "/signing_key/rotate", ""},
	} {
		for name, auth := range map[string]authorization{
			"nobody":                   nobody,
			"a key without Management": w.basic(),
			"a SAT":                    bearer(w.tokens(`{"reference":"ada"}`).Token),
		} {
			if r := w.call(auth, route.method, route.path, route.body); r.status != http.StatusUnauthorized {
				t.Errorf("%s %s by %s: got %d %s, want 401", route.method, route.path, name, r.status, r.text)
			}
		}

		if !strings.Contains(route.path, created.ID) {
			continue
		}
		if r := w.call(foreign, route.method, route.path, route.body); r.status != http.StatusNotFound {
			t.Errorf("%s %s by another project: got %d %s, want 404", route.method, route.path, r.status, r.text)
		}
	}

	if r := w.call(boss, "GET", path, ""); r.status != http.StatusOK || !strings.Contains(r.text, `"name":""`) {
		t.Errorf("the webhook afterwards: %d %s, want no change", r.status, r.text)
	}
}

// TestDeliveries shows that deliveries contain the same data as the API, without secrets.
func TestDeliveries(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	hook := w.webhook(boss, `{"url":"https://example.com/"}`)
	path := webhookPath + "/" + hook.ID + "/deliveries"
	sub := w.call(w.basic(), "POST", "/api/fabric/resources/subscribers",
		`{"email":"ada@example.com","password":"fathom-lantern-7","first_name":"<Ada>"}`)
	sip := w.call(w.basic(), "POST", "/api/fabric/resources/sip_endpoints",
		`{"username":"ada","password":"not to be told"}`)
	if sub.status != http.StatusCreated || sip.status != http.StatusCreated {
		t.Fatal(sub, sip)
	}

	list := as[struct {
		Data  []deliveryBody
		Links struct{ Next string }
	}](t, w.call(boss, "GET", path+"?page_size=1&state=pending", ""))

	if len(list.Data) != 1 || list.Data[0].Event != "resource.created" || list.Data[0].State != "pending" ||
		list.Data[0].Status != nil || list.Data[0].Error != nil {
		t.Fatalf("deliveries %+v, want the newest, which is pending", list)
	}
	if next, err := url.Parse(list.Links.Next); err != nil || next.Query().Get("state") != "pending" {
		t.Errorf("the next page is %q, want one with the same state", list.Links.Next)
	}

	older := as[struct{ Data []deliveryBody }](t, w.call(boss, "GET", list.Links.Next, "")).Data[0]
	for _, tt := range []struct {
		id, want string
	}{{list.Data[0].ID, as[struct{ ID string }](t, sip).ID}, {older.ID, as[struct{ ID string }](t, sub).ID}} {
		r := w.call(boss, "GET", path+"/"+tt.id, "")
		d := as[deliveryBody](t, r)
		data := as[struct {
			ID        string
			ProjectID string `json:"project_id"`
		}](t, reply{text: string(d.Body.Data)})
		shown := w.call(w.basic(), "GET", "/api/fabric/resources/"+tt.want, "")
		if d.ResourceID != tt.want || d.Body.ID != tt.id || d.Body.Event != d.Event ||
			d.Body.ProjectID != w.project.ID || data.ID != tt.want ||
			strings.TrimSpace(shown.text) != string(d.Body.Data) {
			t.Errorf("delivered %s, want what the API shows: %s", r.text, shown.text)
		}

		if _, err := time.Parse(time.RFC3339, d.Body.CreatedAt); err != nil {
			t.Error(err)
		}
		for _, secret := range []string{"fathom", "not to be told", "argon2", "password"} {
			if strings.Contains(r.text, secret) {
				t.Errorf("delivered %s, which contains %q", r.text, secret)
			}
		}
	}

	w.dies(w.rows.Webhooks.Queue(), hook.ID, older.ID, 9, 500)
	dead := as[struct{ Data []deliveryBody }](t, w.call(boss, "GET", path+"?state=dead", ""))
	if len(dead.Data) != 1 || dead.Data[0].ID != older.ID || *dead.Data[0].Status != 500 ||
		dead.Data[0].Attempts != 9 || *dead.Data[0].Duration != 0.214 || dead.Data[0].ResponseBody != nil {
		t.Errorf("dead letters %+v, want the older one after 9 attempts, without its response", dead)
	}

	// The API shows the receiver's response only with a single delivery. It never shows the refused
	// address.
	r := w.call(boss, "GET", path+"/"+older.ID, "")
	if got := as[deliveryBody](t, r); *got.ResponseBody != "<unknown>" || *got.Duration != 0.214 {
		t.Errorf("the dead letter: %s, want its response and duration", r.text)
	}
	for _, path := range []string{path, path + "/" + older.ID} {
		if r := w.call(boss, "GET", path, ""); strings.Contains(r.text, "10.9.8.7") {
			t.Errorf("%s reveals the address: %s", path, r.text)
		}
	}

	r = w.call(boss, "POST", webhookPath+"/"+hook.ID+"/test", "")
	if got := as[deliveryBody](t, r); r.status != http.StatusAccepted || got.Event != "webhook.test" ||
		got.State != "pending" || got.ResourceID != hook.ID {
		t.Errorf("test: got %d %s, want 202 and a pending webhook.test", r.status, r.text)
	}

	r = w.call(boss, "POST", path+"/"+older.ID+"/redeliver", "")
	if got := as[deliveryBody](t, r); r.status != http.StatusAccepted || got.State != "pending" ||
		got.Attempts != 0 || got.Status != nil || got.Duration != nil {
		t.Errorf("redeliver: got %d %s, want 202 and a pending delivery", r.status, r.text)
	}
	if r := w.call(boss, "POST", path+"/redeliver", ""); r.status != http.StatusAccepted ||
		strings.TrimSpace(r.text) != `{"redelivered":0}` {
		t.Errorf("redeliver all: got %d %s, want 202 and none redelivered", r.status, r.text)
	}
}

type signing struct {
	ID, Key string
	Next    *struct {
		ID, Key  string
		StartsAt string `json:"starts_at"`
	}
}

func TestSigningKey(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	const path = webhookPath + "/signing_key"
	get := func() signing {
		t.Helper()
		r := w.call(boss, "GET", path, "")
		if r.status != http.StatusOK {
			t.Fatalf("GET %s: got %d %s, want 200", path, r.status, r.text)
		}
		return as[signing](t, r)
	}

	first := get()
	if first != get() || len(first.Key) != 67 || first.Next != nil {
		t.Fatalf("the first key is %+v, and then %+v", first, get())
	}

	for body, want := range map[string]string{
		`{"overlap":-1}`:          "overlap:invalid_parameter",
		`{"overlap":99999999999}`: "overlap:invalid_parameter",
		`{"overlap":"x"}`:         "overlap:invalid_parameter",
	} {
		if got := w.call(boss, "POST", path+"/rotate", body).faults(t); got != want {
			t.Errorf("rotate with %s: got %s, want %s", body, got, want)
		}
	}

	rotated := as[signing](t, w.call(boss, "POST", path+"/rotate", `{"overlap":3600}`))
	if rotated.Key != first.Key || rotated.Next == nil || rotated.Next.Key == first.Key {
		t.Fatalf("rotated: %+v, want the old key and the next", rotated)
	}
	if got := w.call(boss, "POST", path+"/rotate", "").faults(t); got != "overlap:invalid_parameter" {
		t.Errorf("rotate again: got %s, want overlap:invalid_parameter", got)
	}
	if key, err := w.fabric.Webhooks.SigningKey(context.Background(), w.project.ID); err != nil || key != first.Key {
		t.Errorf("signed with %s, %v, want the old key", key, err)
	}

	w.pass(time.Hour)
	if now := get(); now.Key != rotated.Next.Key || now.Next != nil {
		t.Errorf("after the overlap: %+v, want the next key alone", now)
	}
	key, err := w.fabric.Webhooks.SigningKey(context.Background(), w.project.ID)
	if err != nil || key != rotated.Next.Key {
		t.Errorf("signed with %s, %v, want the new key", key, err)
	}

	at := as[signing](t, w.call(boss, "POST", path+"/rotate", `{"overlap":0}`))
	if at.Key == rotated.Next.Key || at.Next != nil {
		t.Errorf("rotated without overlap: %+v, want a new key alone", at)
	}
	if text := must[string](t)(sealedKeys(w)); strings.Contains(text, at.Key) {
		t.Error("the key is stored unsealed")
	}
}

// sealedKeys returns the signing keys as their rows store them.
func sealedKeys(w *world) (text string, err error) {
	all, err := w.rows.ListSigningKeys(context.Background(), w.project.ID)
	for _, k := range all {
		text += k.Sealed
	}
	return text, err
}
