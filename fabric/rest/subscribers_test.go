package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func (w *world) create(body string) envelope {
	w.t.Helper()
	r := w.call(w.basic(), "POST", subscribers, body)
	if r.status != http.StatusCreated {
		w.t.Fatalf("creating %s: got %d %s, want 201", body, r.status, r.text)
	}
	return as[envelope](w.t, r)
}

func TestSubscriberLife(t *testing.T) {
	w := newWorld(t)
	for i, path := range []string{subscribers, "/api/fabric/subscribers"} {
		email := []string{"Ada@Example.COM", "bob@example.com"}[i]
		r := w.call(w.basic(), "POST", path,
			`{"email":"`+email+`","password":"correct horse","first_name":"Ada","timezone":"PST",
			"id":"mine","project_id":"theirs","created_at":"1970","nothing":{"of":["ours"]}}`)
		got := as[envelope](t, r)
		want := envelope{
			ID:          got.ID,
			ProjectID:   w.project.ID,
			DisplayName: "Ada",
			Type:        "subscriber",
			CreatedAt:   got.CreatedAt,
			UpdatedAt:   got.CreatedAt,
			Subscriber: map[string]any{
				"id": got.ID, "email": strings.ToLower(email), "first_name": "Ada", "last_name": "",
				"display_name": "",
				"job_title":    "", "timezone": "PST", "country": "", "company_name": "",
				"record_calls": "inherit", "forward_busy": "", "forward_no_answer": "", "ring_seconds": 0.0,
			},
		}
		if diff := cmp.Diff(want, got); r.status != http.StatusCreated || diff != "" {
			t.Errorf("POST %s: got %d, want 201 (-want +got):\n%s", path, r.status, diff)
		}
		if len(got.ID) != 36 || !strings.HasSuffix(got.CreatedAt, "Z") {
			t.Errorf("POST %s: id %q, created_at %q, want a UUID and a UTC time", path, got.ID, got.CreatedAt)
		}
	}

	ada := as[listed[envelope]](t, w.call(w.basic(), "GET", subscribers, "")).Data[0]
	one, manager := subscribers+"/"+ada.ID, w.administrator()
	for _, change := range []struct{ method, body, member, want string }{
		{"PUT", `{"last_name":"Lovelace"}`, "last_name", "Lovelace"},
		{"PATCH", `{"display_name":"The Countess","timezone":null}`, "display_name", "The Countess"},
		{"PATCH", `{"email":"COUNTESS@example.com"}`, "email", "countess@example.com"},
		{"PUT", `{"first_name":""}`, "first_name", ""},
		{"PATCH", `{"record_calls":"on"}`, "record_calls", "on"},
		{"PATCH", `{"record_calls":null}`, "record_calls", "on"},
		{"PUT", `{"id":"x","project_id":"` + w.other.ID + `"}`, "id", ada.ID},
	} {
		r := w.call(manager, change.method, one, change.body)
		if got := as[envelope](t, r); r.status != http.StatusOK ||
			got.Subscriber[change.member] != change.want || got.ProjectID != w.project.ID {
			t.Errorf("%s %s: got %d %s, want %s %q", change.method, change.body, r.status, r.text,
				change.member, change.want)
		}
	}

	got := as[envelope](t, w.call(w.basic(), "GET", one, ""))
	if got.DisplayName != "The Countess" || got.Subscriber["last_name"] != "Lovelace" ||
		got.Subscriber["timezone"] != "PST" {
		t.Errorf("after the changes: got %+v, want omitted members to stay", got)
	}

	addresses := as[listed[address]](t, w.call(w.basic(), "GET", one+"/addresses", "")).Data
	if len(addresses) != 1 || addresses[0].DisplayName != "The Countess" || addresses[0].Name != "ada" {
		t.Errorf("addresses: got %+v, want one, renamed with the subscriber", addresses)
	}

	if r := w.call(w.basic(), "DELETE", one, ""); r.status != http.StatusNoContent || r.text != "" {
		t.Errorf("DELETE: got %d %q, want 204", r.status, r.text)
	}

	for _, path := range []string{one, one + "/addresses"} {
		if r := w.call(w.basic(), "GET", path, ""); r.status != http.StatusNotFound {
			t.Errorf("GET %s after DELETE: got %d, want 404", path, r.status)
		}
	}
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

	if all := as[listed[envelope]](t, w.call(w.basic(), "GET", subscribers, "")); len(all.Data) != 1 {
		t.Errorf("after refusals there are %d subscribers, want 1", len(all.Data))
	}

	ada := w.create(`{"email":"ada@example.com"}`)
	one := subscribers + "/" + ada.ID
	for _, tt := range []struct{ body, want string }{
		{`{"email":"taken@example.com"}`, "email:value_not_unique"},
		{`{"email":""}`, "email:missing_required_parameter"},
		{`{"password":"short","timezone":5}`, "timezone:invalid_parameter password:invalid_parameter"},
	} {
		if got := w.call(w.administrator(), "PUT", one, tt.body).faults(t); got != tt.want {
			t.Errorf("PUT %s: got %s, want %s", tt.body, got, tt.want)
		}
	}

	if got := as[envelope](t, w.call(w.basic(), "GET", one, "")); got.Subscriber["email"] != "ada@example.com" {
		t.Errorf("after refusals, the email is %q, want no change", got.Subscriber["email"])
	}
}

func TestBodies(t *testing.T) {
	w := newWorld(t)
	tests := []struct {
		kind, body string
		want       int
	}{
		{"application/json", `{"email":`, http.StatusBadRequest},
		{"application/json", `[]`, http.StatusBadRequest},
		{"application/json", `{"email":"a@b.c"} {}`, http.StatusBadRequest},
		{"application/json", `{"email":"a@b.c","email":"d@e.f"}`, http.StatusBadRequest},
		{"application/json", "{\"email\":\"\xff@b.c\"}", http.StatusBadRequest},
		{"application/json", strings.Repeat("[", 100_000), http.StatusBadRequest},
		{"application/json", `{"a":` + strings.Repeat("[", 100_000), http.StatusBadRequest},
		{"application/json", `{"email":"` + strings.Repeat("x", 2<<20) + `"}`, http.StatusRequestEntityTooLarge},
		{"text/plain", `{"email":"a@b.c"}`, http.StatusUnsupportedMediaType},
		{"", `{"email":"a@b.c"}`, http.StatusUnsupportedMediaType},
		{"application/json; charset=utf-16", `{"email":"a@b.c"}`, http.StatusUnsupportedMediaType},
		{"application/x-www-form-urlencoded", `email=form@example.com&first_name=F`, http.StatusCreated},
	}

	for _, tt := range tests {
		r := w.callAs(w.basic(), "POST", subscribers, tt.kind, tt.body)
		if r.status != tt.want {
			t.Errorf("POST %s %.40q: got %d %.100s, want %d", tt.kind, tt.body, r.status, r.text, tt.want)
		}
		texts := map[int]string{400: "Bad Request", 413: "Payload Too Large", 415: "Unsupported Media Type"}
		if text := texts[tt.want]; text != "" {
			if got := as[map[string]string](t, r); len(got) != 1 || got["error"] != text {
				t.Errorf("POST %s %.40q: got %s, want the error %q", tt.kind, tt.body, r.text, text)
			}
		}
	}
}

func TestForeignSubscriber(t *testing.T) {
	w := newWorld(t)
	ada := w.create(`{"email":"ada@example.com"}`)
	for _, id := range []string{ada.ID, "00000000-0000-0000-0000-000000000000", "nonsense", "%00", "..%2f"} {
		for _, call := range [][2]string{{"GET", ""}, {"PUT", "{}"}, {"PATCH", `{"first_name":"Eve"}`},
			{"DELETE", ""}} {
			r := w.call(w.stranger(), call[0], subscribers+"/"+id, call[1])
			if r.status != http.StatusNotFound || strings.TrimSpace(r.text) != `{"error":"Not Found"}` {
				t.Errorf("%s %s by a stranger: got %d %s, want 404", call[0], id, r.status, r.text)
			}
		}
		if r := w.call(w.stranger(), "GET", subscribers+"/"+id+"/addresses", ""); r.status != http.StatusNotFound {
			t.Errorf("addresses of %s by a stranger: got %d, want 404", id, r.status)
		}
	}

	got := as[envelope](t, w.call(w.basic(), "GET", subscribers+"/"+ada.ID, ""))
	if got.Subscriber["first_name"] != "" {
		t.Errorf("a stranger changed %+v", got)
	}

	// Both projects may have a subscriber with the same email.
	if r := w.call(w.stranger(), "POST", subscribers, `{"email":"ada@example.com"}`); r.status != http.StatusCreated {
		t.Errorf("the same email in another project: got %d %s, want 201", r.status, r.text)
	}
}

func TestSubscriberPages(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.create(`{"email":"` + name + `@example.com"}`)
	}

	next := subscribers + "?page_size=2"
	var seen []string
	var pages []listed[envelope]
	for next != "" {
		r := w.call(w.basic(), "GET", next, "")
		got := as[listed[envelope]](t, r)
		if r.status != http.StatusOK {
			t.Fatalf("GET %s: got %d %s, want 200", next, r.status, r.text)
		}
		for _, s := range got.Data {
			seen = append(seen, s.Subscriber["email"].(string)[:1])
		}
		pages, next = append(pages, got), got.Links["next"]
	}

	if got := strings.Join(seen, ""); got != "abcde" || len(pages) != 3 {
		t.Errorf("all pages: got %s in %d pages, want abcde in 3", got, len(pages))
	}

	for i, p := range pages {
		if !strings.HasPrefix(p.Links["self"], subscribers+"?page_number=") ||
			!strings.HasPrefix(p.Links["first"], subscribers+"?page_number=0&page_size=2") {
			t.Errorf("page %d: links %v, want self and first", i, p.Links)
		}
		if _, has := p.Links["prev"]; has != (i > 0) {
			t.Errorf("page %d: links %v, want prev only after the first page", i, p.Links)
		}
	}

	for i := 2; i > 0; i-- {
		before := as[listed[envelope]](t, w.call(w.basic(), "GET", pages[i].Links["prev"], ""))
		if diff := cmp.Diff(pages[i-1].Data, before.Data); diff != "" {
			t.Errorf("the page before %d (-want +got):\n%s", i, diff)
		}
	}

	empty := w.call(w.stranger(), "GET", subscribers, "")
	if !strings.HasPrefix(empty.text, `{"data":[],`) {
		t.Errorf("an empty list: got %s, want an empty array", empty.text)
	}
}

func TestPageRefusals(t *testing.T) {
	w := newWorld(t)
	tests := []struct{ query, want string }{
		{"page_size=0", "page_size:invalid_parameter"},
		{"page_size=1001", "page_size:invalid_parameter"},
		{"page_size=x", "page_size:invalid_parameter"},
		{"page_size=", "page_size:invalid_parameter"},
		{"page_size=99999999999999999999", "page_size:invalid_parameter"},
		{"page_number=-1", "page_number:invalid_parameter"},
		{"page_number=1", "page_token:page_token_required"},
		{"page_number=1&page_token=PA", "page_token:page_token_is_invalid"},
		{"page_token=x' OR 1=1--", "page_token:page_token_is_invalid"},
		{"page_token=%00", "page_token:page_token_is_invalid"},
		{"page_size=0&page_number=2", "page_size:invalid_parameter page_token:page_token_required"},
	}

	for _, tt := range tests {
		path := subscribers + "?" + strings.ReplaceAll(tt.query, " ", "%20")
		if got := w.call(w.basic(), "GET", path, "").faults(t); got != tt.want {
			t.Errorf("GET %s: got %s, want %s", path, got, tt.want)
		}
	}

	if r := w.call(w.basic(), "GET", subscribers+"?page_size=1000&page_number=0", ""); r.status != http.StatusOK {
		t.Errorf("the largest page: got %d, want 200", r.status)
	}
}
