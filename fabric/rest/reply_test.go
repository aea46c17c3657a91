package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// A reply is a response from the API.
type reply struct {
	status int
	header http.Header
	text   string
}

// as decodes the JSON of a reply.
func as[T any](t testing.TB, r reply) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.text), &v); err != nil {
		t.Fatalf("reading %d %s: %v", r.status, r.text, err)
	}
	return v
}

// wantStatus fails the test unless the reply to what was requested has the given status.
func (r reply) wantStatus(t testing.TB, requested string, status int) {
	t.Helper()
	if r.status != status {
		t.Errorf("%s: got %d %s, want %d", requested, r.status, r.text, status)
	}
}

// wantText fails the test unless the reply to what was requested contains each of the parts.
func (r reply) wantText(t testing.TB, requested string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.text, part) {
			t.Errorf("%s: got %d %s, want it to contain %s", requested, r.status, r.text, part)
		}
	}
}

// wantNoText fails the test if the reply to what was requested contains one of the parts.
func (r reply) wantNoText(t testing.TB, requested string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(r.text, part) {
			t.Errorf("%s: got %d %s, want it not to contain %s", requested, r.status, r.text, part)
		}
	}
}

// wantError fails the test unless the reply has the given status, and a body that names the status.
func (r reply) wantError(t testing.TB, requested string, status int) {
	t.Helper()
	r.wantStatus(t, requested, status)
	want := `{"error":"` + http.StatusText(status) + `"}`
	if got := strings.TrimSpace(r.text); got != want {
		t.Errorf("%s: the body is %s, want %s", requested, got, want)
	}
}

// faults returns the errors of a 422 as "attribute:code", in order.
func (r reply) faults(t testing.TB) string {
	t.Helper()
	if r.status != http.StatusUnprocessableEntity {
		t.Fatalf("got %d %s, want 422", r.status, r.text)
	}

	type fault struct{ Type, Code, Message, Attribute, URL string }
	var all []string
	for _, f := range as[struct{ Errors []fault }](t, r).Errors {
		if f.Type != "validation_error" {
			t.Errorf("error %+v has the type %q, want validation_error", f, f.Type)
		}
		if f.Message == "" {
			t.Errorf("error %+v has no message", f)
		}
		if f.URL != "https://signalwire.com/docs/apis/error-codes" {
			t.Errorf("error %+v has the URL %q, want the list of error codes", f, f.URL)
		}
		all = append(all, f.Attribute+":"+f.Code)
	}
	return strings.Join(all, " ")
}
