package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
)

const subscribers = "/api/fabric/resources/subscribers"

type envelope struct {
	ID          string         `json:"id"`
	ProjectID   string         `json:"project_id"`
	DisplayName string         `json:"display_name"`
	Type        string         `json:"type"`
	CreatedAt   string         `json:"created_at"`
	UpdatedAt   string         `json:"updated_at"`
	Subscriber  map[string]any `json:"subscriber"`
}

type listed[T any] struct {
	Data  []T               `json:"data"`
	Links map[string]string `json:"links"`
}

// create creates a subscriber.
func (w *world) create(body string) envelope {
	w.t.Helper()
	r := w.call(w.basic(), "POST", subscribers, body)
	if r.status != http.StatusCreated {
		w.t.Fatalf("creating %s: got %d %s, want 201", body, r.status, r.text)
	}
	return as[envelope](w.t, r)
}

// setDisabled disables a subscriber of the world's first project, or enables it again.
func (w *world) setDisabled(id string, disabled bool) {
	w.t.Helper()
	in := fabric.SubscriberInput{Disabled: &disabled}
	if _, err := w.fabric.Subscribers.Update(w.t.Context(), w.project.ID, id, in); err != nil {
		w.t.Fatal(err)
	}
}

func TestCreateSubscriber(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ path, email, wantEmail string }{
		{subscribers, "Ada@Example.COM", "ada@example.com"},
		{"/api/fabric/subscribers", "bob@example.com", "bob@example.com"},
	} {
		r := w.call(w.basic(), "POST", tt.path,
			`{"email":"`+tt.email+`","password":"correct horse","first_name":"Ada","timezone":"PST",
			"id":"mine","project_id":"theirs","created_at":"1970","nothing":{"of":["ours"]}}`)
		r.wantStatus(t, "POST "+tt.path, http.StatusCreated)

		got := as[envelope](t, r)
		want := envelope{
			ID:          got.ID,
			ProjectID:   w.project.ID,
			DisplayName: "Ada",
			Type:        "subscriber",
			CreatedAt:   got.CreatedAt,
			UpdatedAt:   got.CreatedAt,
			Subscriber: map[string]any{
				"id":                got.ID,
				"email":             tt.wantEmail,
				"first_name":        "Ada",
				"last_name":         "",
				"display_name":      "",
				"job_title":         "",
				"timezone":          "PST",
				"country":           "",
				"company_name":      "",
				"record_calls":      "inherit",
				"forward_busy":      "",
				"forward_no_answer": "",
				"ring_seconds":      0.0,
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("POST %s (-want +got):\n%s", tt.path, diff)
		}
		if len(got.ID) != 36 {
			t.Errorf("POST %s: the id is %q, want a UUID", tt.path, got.ID)
		}
		if !strings.HasSuffix(got.CreatedAt, "Z") {
			t.Errorf("POST %s: created_at is %q, want a time in UTC", tt.path, got.CreatedAt)
		}
	}
}

// TestChangeSubscriber shows that a change keeps the members that it omits, and that members that
// callers cannot set are ignored.
func TestChangeSubscriber(t *testing.T) {
	w := newWorld(t)
	ada := w.create(`{"email":"ada@example.com","first_name":"Ada","timezone":"PST"}`)
	path := subscribers + "/" + ada.ID
	manager := w.administrator()
	for _, change := range []struct{ method, body, member, want string }{
		{"PUT", `{"last_name":"Lovelace"}`, "last_name", "Lovelace"},
		{"PATCH", `{"display_name":"The Countess","timezone":null}`, "display_name", "The Countess"},
		{"PATCH", `{"email":"COUNTESS@example.com"}`, "email", "countess@example.com"},
		{"PUT", `{"first_name":""}`, "first_name", ""},
		{"PATCH", `{"record_calls":"on"}`, "record_calls", "on"},
		{"PATCH", `{"record_calls":null}`, "record_calls", "on"},
		{"PUT", `{"id":"x","project_id":"` + w.other.ID + `"}`, "id", ada.ID},
	} {
		requested := change.method + " " + change.body
		r := w.call(manager, change.method, path, change.body)
		r.wantStatus(t, requested, http.StatusOK)
		got := as[envelope](t, r)
		if got.Subscriber[change.member] != change.want {
			t.Errorf("%s: %s is %q, want %q", requested, change.member, got.Subscriber[change.member], change.want)
		}
		if got.ProjectID != w.project.ID {
			t.Errorf("%s: the project is %s, want %s", requested, got.ProjectID, w.project.ID)
		}
	}

	got := as[envelope](t, w.call(w.basic(), "GET", path, ""))
	if got.DisplayName != "The Countess" {
		t.Errorf("after the changes, the display name is %q, want The Countess", got.DisplayName)
	}
	if name := got.Subscriber["last_name"]; name != "Lovelace" {
		t.Errorf("after the changes, last_name is %q, want Lovelace", name)
	}
	if zone := got.Subscriber["timezone"]; zone != "PST" {
		t.Errorf("after the changes, timezone is %q, want PST", zone)
	}

	found := as[listed[address]](t, w.call(w.basic(), "GET", path+"/addresses", "")).Data
	if len(found) != 1 {
		t.Fatalf("the addresses are %+v, want one", found)
	}
	if found[0].DisplayName != "The Countess" {
		t.Errorf("the address is displayed as %q, want The Countess", found[0].DisplayName)
	}
	if found[0].Name != "ada" {
		t.Errorf("the address is named %q, want ada", found[0].Name)
	}
}

func TestDeleteSubscriber(t *testing.T) {
	w := newWorld(t)
	path := subscribers + "/" + w.create(`{"email":"ada@example.com"}`).ID
	r := w.call(w.basic(), "DELETE", path, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	if r.text != "" {
		t.Errorf("DELETE: the body is %s, want none", r.text)
	}
	r = w.call(w.basic(), "GET", path, "")
	r.wantStatus(t, "GET after DELETE", http.StatusNotFound)
	r = w.call(w.basic(), "GET", path+"/addresses", "")
	r.wantStatus(t, "GET of the addresses after DELETE", http.StatusNotFound)
}

func TestSubscriberRefusals(t *testing.T) {
	w := newWorld(t)
	w.create(`{"email":"taken@example.com"}`)
	long := strings.Repeat("x", 256)
	tests := []struct{ body, want string }{
		{`{}`, "email:missing_required_parameter"},
		{`{"email":""}`, "email:missing_required_parameter"},
		{`{"email":null}`, "email:missing_required_parameter"},
		{`{"email":"nobody"}`, "email:invalid_parameter"},
		{`{"email":"Ada <ada@example.com>"}`, "email:invalid_parameter"},
		{`{"email":"a@b@c"}`, "email:invalid_parameter"},
		{`{"email":"` + long + `@example.com"}`, "email:invalid_parameter"},
		{`{"email":"a\u0000@example.com"}`, "email:invalid_parameter"},
		{`{"email":"Taken@EXAMPLE.com"}`, "email:value_not_unique"},
		{`{"email":1}`, "email:invalid_parameter"},
		{`{"email":{"a":[[[[]]]]}}`, "email:invalid_parameter"},
		{`{"email":"a@example.com","password":"short"}`, "password:invalid_parameter"},
		{`{"email":"a@example.com","password":""}`, "password:missing_required_parameter"},
		{`{"email":"a@example.com","password":"` + long + `"}`, "password:invalid_parameter"},
		{`{"email":"a@example.com","timezone":"` + long + `"}`, "timezone:invalid_parameter"},
		{`{"email":"a@example.com","country":"a\nb"}`, "country:invalid_parameter"},
		{`{"email":"a@example.com","record_calls":""}`, "record_calls:invalid_parameter"},
		{`{"email":"a@example.com","record_calls":"yes"}`, "record_calls:invalid_parameter"},
		{`{"email":"a@example.com","record_calls":true}`, "record_calls:invalid_parameter"},
		{
			`{"first_name":7,"password":"x","last_name":"` + long + `","timezone":[]}`,
			"first_name:invalid_parameter timezone:invalid_parameter last_name:invalid_parameter " +
				"email:missing_required_parameter password:invalid_parameter",
		},
	}

	for _, tt := range tests {
		r := w.call(w.basic(), "POST", subscribers, tt.body)
		got, want := strings.Fields(r.faults(t)), strings.Fields(tt.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("POST %.80s: got %v, want %v", tt.body, got, want)
		}
	}

	if left := as[listed[envelope]](t, w.call(w.basic(), "GET", subscribers, "")); len(left.Data) != 1 {
		t.Errorf("after refusals there are %d subscribers, want 1", len(left.Data))
	}

	path := subscribers + "/" + w.create(`{"email":"ada@example.com"}`).ID
	for _, tt := range []struct{ body, want string }{
		{`{"email":"taken@example.com"}`, "email:value_not_unique"},
		{`{"email":""}`, "email:missing_required_parameter"},
		{`{"password":"short","timezone":5}`, "timezone:invalid_parameter password:invalid_parameter"},
	} {
		if got := w.call(w.administrator(), "PUT", path, tt.body).faults(t); got != tt.want {
			t.Errorf("PUT %s: got %s, want %s", tt.body, got, tt.want)
		}
	}
	after := as[envelope](t, w.call(w.basic(), "GET", path, ""))
	if email := after.Subscriber["email"]; email != "ada@example.com" {
		t.Errorf("after refusals, the email is %q, want ada@example.com", email)
	}
}

func TestBodies(t *testing.T) {
	w := newWorld(t)
	const (
		jsonType    = "application/json"
		bad         = "Bad Request"
		large       = "Payload Too Large"
		unsupported = "Unsupported Media Type"
	)
	deep := strings.Repeat("[", 100_000)
	tests := []struct {
		kind, body string
		want       int
		wantError  string
	}{
		{jsonType, `{"email":`, 400, bad},
		{jsonType, `[]`, 400, bad},
		{jsonType, `{"email":"a@b.c"} {}`, 400, bad},
		{jsonType, `{"email":"a@b.c","email":"d@e.f"}`, 400, bad},
		{jsonType, "{\"email\":\"\xff@b.c\"}", 400, bad},
		{jsonType, deep, 400, bad},
		{jsonType, `{"a":` + deep, 400, bad},
		{jsonType, `{"email":"` + strings.Repeat("x", 2<<20) + `"}`, 413, large},
		{"text/plain", `{"email":"a@b.c"}`, 415, unsupported},
		{"", `{"email":"a@b.c"}`, 415, unsupported},
		{"application/json; charset=utf-16", `{"email":"a@b.c"}`, 415, unsupported},
		{"application/x-www-form-urlencoded", `email=form@example.com&first_name=F`, 201, ""},
	}

	for _, tt := range tests {
		r := w.callAs(w.basic(), "POST", subscribers, tt.kind, tt.body)
		requested := fmt.Sprintf("POST %s %.40q", tt.kind, tt.body)
		r.wantStatus(t, requested, tt.want)
		if tt.wantError == "" {
			continue
		}
		want := map[string]string{"error": tt.wantError}
		if diff := cmp.Diff(want, as[map[string]string](t, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", requested, diff)
		}
	}
}

func TestForeignSubscriber(t *testing.T) {
	w := newWorld(t)
	ada := w.create(`{"email":"ada@example.com"}`)
	for _, id := range []string{ada.ID, "00000000-0000-0000-0000-000000000000", "nonsense", "%00", "..%2f"} {
		path := subscribers + "/" + id
		for _, request := range []struct{ method, body string }{
			{"GET", ""},
			{"PUT", "{}"},
			{"PATCH", `{"first_name":"Eve"}`},
			{"DELETE", ""},
		} {
			r := w.call(w.stranger(), request.method, path, request.body)
			r.wantError(t, request.method+" "+path+" by a stranger", http.StatusNotFound)
		}
		r := w.call(w.stranger(), "GET", path+"/addresses", "")
		r.wantStatus(t, "GET "+path+"/addresses by a stranger", http.StatusNotFound)
	}

	got := as[envelope](t, w.call(w.basic(), "GET", subscribers+"/"+ada.ID, ""))
	if name := got.Subscriber["first_name"]; name != "" {
		t.Errorf("after the requests of a stranger, first_name is %q, want it empty", name)
	}

	// Both projects may have a subscriber with the same email.
	r := w.call(w.stranger(), "POST", subscribers, `{"email":"ada@example.com"}`)
	r.wantStatus(t, "the same email in another project", http.StatusCreated)
}
