package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
)

const webhookPath = "/api/fabric/webhooks"

type webhook struct {
	ID, URL, Name string
	ProjectID     string `json:"project_id"`
	Events        []string
	Enabled       bool
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
	want := webhook{
		ID:        created.ID,
		URL:       "https://example.com/a?b=c",
		ProjectID: w.project.ID,
		Events:    []string{"*"},
		Enabled:   true,
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("POST (-want +got):\n%s", diff)
	}

	path := webhookPath + "/" + created.ID
	r := w.call(boss, "PATCH", path,
		`{"events":["subscriber.created","subscriber.created","resource.deleted"],"name":"CRM"}`)
	r.wantStatus(t, "PATCH", http.StatusOK)
	want.Name = "CRM"
	want.Events = []string{"subscriber.created", "resource.deleted"}
	if diff := cmp.Diff(want, as[webhook](t, r)); diff != "" {
		t.Errorf("PATCH (-want +got):\n%s", diff)
	}

	r = w.call(boss, "PUT", path, `{"enabled":false}`)
	r.wantStatus(t, "PUT", http.StatusOK)
	want.Enabled = false
	if diff := cmp.Diff(want, as[webhook](t, r)); diff != "" {
		t.Errorf("PUT (-want +got):\n%s", diff)
	}

	r = w.call(boss, "GET", webhookPath, "")
	r.wantStatus(t, "GET", http.StatusOK)
	r.wantText(t, "GET", created.ID, `"links":{"self"`)

	r = w.call(boss, "DELETE", path, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	r = w.call(boss, "GET", path, "")
	r.wantStatus(t, "GET after DELETE", http.StatusNotFound)
}

func TestWebhookFaults(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	created := w.webhook(boss, `{"url":"https://example.com/"}`)
	longURL := "https://example.com/" + strings.Repeat("a", 2048)
	longName := strings.Repeat("a", 256)
	for _, tt := range []struct{ body, want string }{
		{`{}`, "url:missing_required_parameter"},
		{`{"url":""}`, "url:missing_required_parameter"},
		{`{"url":7,"name":7}`, "url:invalid_parameter name:invalid_parameter"},
		{`{"url":"gopher://example.com/"}`, "url:not_an_http_url"},
		{`{"url":"http://10.0.0.1/"}`, "url:url_is_unsafe"},
		{
			`{"url":"http://10.0.0.1/","name":"a\u0000b","events":["subscriber.made"]}`,
			"url:url_is_unsafe name:invalid_parameter events:invalid_parameter",
		},
		{`{"url":"https://example.com/","events":"*"}`, "events:invalid_parameter"},
		{`{"url":"https://example.com/","enabled":"yes"}`, "enabled:invalid_parameter"},
		{`{"url":"` + longURL + `"}`, "url:invalid_parameter"},
		{`{"url":"https://example.com/","name":"` + longName + `","events":[]}`, "name:invalid_parameter"},
	} {
		if got := w.call(boss, "POST", webhookPath, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %.80s: got %s, want %s", tt.body, got, tt.want)
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
	sat := bearer(w.tokens(`{"reference":"ada"}`).Token) // the webhook gets an event about the new subscriber
	path := webhookPath + "/" + created.ID
	deliveries := as[listed[deliveryBody]](t, w.call(boss, "GET", path+"/deliveries", "")).Data
	id := deliveries[0].ID
	third, secret, _ := w.newProject("three", fabric.Management)

	for _, route := range []struct{ method, path, body string }{
		{"GET", webhookPath, ""},
		{"POST", webhookPath, `{"url":"https://example.com/"}`},
		{"GET", path, ""},
		{"PATCH", path, `{"name":"x"}`},
		{"PUT", path, `{"name":"x"}`},
		{"DELETE", path, ""},
		{"POST", path + "/test", ""},
		{"GET", path + "/deliveries", ""},
		{"GET", path + "/deliveries/" + id, ""},
		{"POST", path + "/deliveries/" + id + "/redeliver", ""},
		{"POST", path + "/deliveries/redeliver", ""},
		{"GET", webhookPath + "/signing_key", ""},
		{"POST", webhookPath + "/signing_key/rotate", ""},
	} {
		requested := route.method + " " + route.path
		for name, auth := range map[string]authorization{
			"nobody":                   nobody,
			"a key without Management": w.basic(),
			"a SAT":                    sat,
		} {
			r := w.call(auth, route.method, route.path, route.body)
			r.wantStatus(t, requested+" by "+name, http.StatusUnauthorized)
		}

		if strings.Contains(route.path, created.ID) {
			r := w.call(basicAuth(third.ID, secret), route.method, route.path, route.body)
			r.wantStatus(t, requested+" by another project", http.StatusNotFound)
		}
	}

	r := w.call(boss, "GET", path, "")
	r.wantStatus(t, "GET of the webhook afterwards", http.StatusOK)
	r.wantText(t, "GET of the webhook afterwards", `"name":""`)
}
