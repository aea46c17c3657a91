package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubscriberPages(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.create(`{"email":"` + name + `@example.com"}`)
	}

	var emails []string
	var pages []listed[envelope]
	for path := subscribers + "?page_size=2"; path != ""; {
		r := w.call(w.basic(), "GET", path, "")
		r.wantStatus(t, "GET "+path, http.StatusOK)
		page := as[listed[envelope]](t, r)
		for _, s := range page.Data {
			emails = append(emails, s.Subscriber["email"].(string))
		}
		pages = append(pages, page)
		path = page.Links["next"]
	}

	want := []string{"a@example.com", "b@example.com", "c@example.com", "d@example.com", "e@example.com"}
	if !slices.Equal(emails, want) {
		t.Errorf("all pages: got %q, want %q", emails, want)
	}
	if len(pages) != 3 {
		t.Fatalf("there are %d pages, want 3", len(pages))
	}

	for i, page := range pages {
		if self := page.Links["self"]; !strings.HasPrefix(self, subscribers+"?page_number=") {
			t.Errorf("page %d: the link self is %q", i, self)
		}
		if first := page.Links["first"]; !strings.HasPrefix(first, subscribers+"?page_number=0&page_size=2") {
			t.Errorf("page %d: the link first is %q", i, first)
		}
	}
	if previous, ok := pages[0].Links["prev"]; ok {
		t.Errorf("the first page has the link prev to %q, want none", previous)
	}
	for i, page := range pages[1:] {
		previous := as[listed[envelope]](t, w.call(w.basic(), "GET", page.Links["prev"], ""))
		if diff := cmp.Diff(pages[i].Data, previous.Data); diff != "" {
			t.Errorf("the page before page %d (-want +got):\n%s", i+1, diff)
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

	r := w.call(w.basic(), "GET", subscribers+"?page_size=1000&page_number=0", "")
	r.wantStatus(t, "GET of the largest page", http.StatusOK)
}
