package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/rest"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// A server is the API on top of real rules, with a real database and real media.
type server struct {
	*httptest.Server
	rules   *recordings.Recordings
	store   *store.Store
	project string
	now     time.Time
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	media := storetest.Media(t, filepath.Join(t.TempDir(), "media"))
	s.store = storetest.Open(t, storetest.Dir(t), nil)
	s.rules = recordings.New(recordings.Config{Store: s.store, Media: media, Now: func() time.Time { return s.now }})
	s.project = storetest.AddProject(t, s.store, s.now)
	api := rest.New(rest.Config{
		Recordings:  s.rules,
		Credentials: credentials,
		MediaURLs: func(r *http.Request, _ recordings.Owner) (func(recordings.Recording) string, error) {
			if r.URL.Query().Get("MediaUrlTtl") == "forever" {
				return nil, problem.BadParam("MediaUrlTtl", "MediaUrlTtl must be a number of seconds")
			}
			return mediaURL, nil
		},
	})
	s.Server = httptest.NewServer(api.Handler())
	t.Cleanup(s.Close)
	return s
}

// credentials accepts the API key "key" of every project, and the password "subscriber" of a
// subscriber. For the key "away", it returns the error for an unavailable database.
func credentials(r *http.Request) (recordings.Owner, error) {
	project, key, _ := web.Basic(r)
	switch key {
	case "key":
		return recordings.Owner{ProjectID: project}, nil
	case "subscriber":
		return recordings.Owner{ProjectID: project, SubscriberID: uuid.NewString()}, nil
	case "away":
		return recordings.Owner{}, problem.New(problem.Unavailable, "unavailable", "the database is unavailable")
	}
	return recordings.Owner{}, problem.NoCredentials()
}

func mediaURL(r recordings.Recording) string {
	if !r.HasMedia() {
		return ""
	}
	return "https://example.com/" + r.Sid
}

func (s *server) upload(t *testing.T, file string, m recordings.Metadata) recordings.Recording {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}

	s.now = s.now.Add(time.Second)
	rec, _, err := s.rules.Ingest(t.Context(), recordings.Upload{
		ProjectID: s.project,
		Body:      bytes.NewReader(b),
		Describe: func() (recordings.Description, error) {
			return recordings.Description{Metadata: m}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func (s *server) do(t *testing.T, method, path, key string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.SetBasicAuth(s.project, key)
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	if cache := res.Header.Get("Cache-Control"); cache != "no-store" {
		t.Errorf("%s %s: Cache-Control = %q, want no-store", method, path, cache)
	}
	retry := res.Header.Get("Retry-After")
	if res.StatusCode == 503 && retry != "1" {
		t.Errorf("%s %s = 503: Retry-After = %q, want 1", method, path, retry)
	}
	if res.StatusCode != 503 && retry == "1" {
		t.Errorf("%s %s = %d: Retry-After = 1, want none", method, path, res.StatusCode)
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

func TestDocuments(t *testing.T) {
	s := newServer(t)
	call := s.upload(t, "speech_stereo_8k.wav", recordings.Metadata{CallSid: "c", Track: "both"})
	conference := recordings.Description{Metadata: recordings.Metadata{ConferenceSid: "room"}}
	live, _, err := s.rules.Announce(t.Context(), s.project, conference)
	if err != nil {
		t.Fatal(err)
	}

	const common = `{"id":"%s","project_id":"%s","created_at":"2026-11-21T10:00:01Z",` +
		`"updated_at":"2026-11-21T10:00:01Z",`
	tests := []struct{ sid, want string }{
		{call.Sid, fmt.Sprintf(common+`"duration_in_seconds":%d,"price":-0.0025,"price_unit":"USD",`+
			`"status":"completed","url":"https://example.com/%[1]s","stereo":true,"byte_size":%[4]d,`+
			`"track":"both","tags":[],"hold":null,"relay_sip_leg_id":"c"}`,
			call.Sid, s.project, call.Seconds(), call.Bytes)},
		{live.Sid, fmt.Sprintf(common+`"duration_in_seconds":0,"price":0,"price_unit":"USD",`+
			`"status":"in-progress","url":null,"stereo":false,"track":"both","relay_conference_id":"room",`+
			`"tags":[],"hold":null}`,
			live.Sid, s.project)},
	}

	for _, tt := range tests {
		status, body := s.do(t, "GET", rest.Prefix+"/"+tt.sid, "key")
		if status != 200 || body != tt.want {
			t.Errorf("GET = %d %s\nwant 200 %s", status, body, tt.want)
		}
	}
}

func TestPages(t *testing.T) {
	s := newServer(t)
	var want []string
	for range 5 {
		want = append(want, s.upload(t, "one_sample.wav", recordings.Metadata{}).Sid)
	}
	slices.Reverse(want)

	var got []string
	pages := 0
	for path := rest.Prefix + "?page_size=2&MediaUrlTtl=60"; path != ""; pages++ {
		if !strings.Contains(path, "MediaUrlTtl=60") {
			t.Errorf("the link to page %d is %q, want it to contain MediaUrlTtl=60", pages, path)
		}
		status, body := s.do(t, "GET", path, "key")
		if status != 200 {
			t.Fatalf("GET %s = %d %s, want 200", path, status, body)
		}
		var page struct {
			Links struct{ Self, First, Next, Prev string }
			Data  []struct{ ID string }
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatal(err)
		}

		for _, rec := range page.Data {
			got = append(got, rec.ID)
		}
		if page.Links.Self == "" {
			t.Errorf("page %d has no link to itself", pages)
		}
		if first := page.Links.First; !strings.HasPrefix(first, rest.Prefix+"?MediaUrlTtl=60&page_number=0") {
			t.Errorf("page %d links to the first page with %q, want page_number=0", pages, first)
		}
		if isFirst := pages == 0; (page.Links.Prev == "") != isFirst {
			t.Errorf("page %d links to the previous page with %q, want a link on all pages but page 0",
				pages, page.Links.Prev)
		}
		path = page.Links.Next
	}

	if pages != 3 {
		t.Errorf("%d pages, want 3", pages)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages contain %q, want %q", got, want)
	}
}

func TestRefusals(t *testing.T) {
	s := newServer(t)
	own := s.upload(t, "one_sample.wav", recordings.Metadata{})
	home := s.project
	s.project = storetest.AddProject(t, s.store, s.now)
	other := s.upload(t, "one_sample.wav", recordings.Metadata{})
	s.project = home
	const unauthorized, missing = `{"error":"Unauthorized"}`, `{"error":"Not Found"}`
	invalid := func(detail, code string) string {
		return `{"errors":[{"detail":"` + detail + `","status":"422","title":"Invalid parameter","code":"` +
			code + `"}]}`
	}

	tests := []struct {
		method, path, key string
		status            int
		body              string
	}{
		{"GET", "", "", 401, unauthorized},
		{"GET", "", "wrong", 401, unauthorized},
		{"GET", "/" + own.Sid, "", 401, unauthorized},
		{"GET", "/" + own.Sid, "away", 503, `{"error":"Service Unavailable"}`},
		{"DELETE", "/" + own.Sid, "", 401, unauthorized},
		{"GET", "/" + other.Sid, "key", 404, missing},
		{"DELETE", "/" + other.Sid, "key", 404, missing},
		{"GET", "/" + own.Sid, "subscriber", 404, missing},
		{"DELETE", "/" + own.Sid, "subscriber", 403, `{"error":"Forbidden"}`},
		{"GET", "/..%2f..%2fetc", "key", 404, missing},
		{"GET", "/a/b", "key", 404, missing},
		{"POST", "", "key", 405, `{"error":"Method Not Allowed"}`},
		{"PUT", "/" + own.Sid, "key", 405, `{"error":"Method Not Allowed"}`},
		{"GET", "?page_size=0", "key", 422,
			invalid("page_size must be an integer from 1 to 1000", "invalid_parameter")},
		{"GET", "?page_number=1", "key", 422,
			invalid("page_token is required when page_number is greater than 0", "page_token_required")},
		{"GET", "?page_token=x", "key", 422, invalid("page_token is invalid", "page_token_is_invalid")},
		{"DELETE", "/" + own.Sid, "key", 204, ""},
		{"DELETE", "/" + own.Sid, "key", 404, missing},
	}

	for _, tt := range tests {
		status, body := s.do(t, tt.method, rest.Prefix+tt.path, tt.key)
		if status != tt.status || body != tt.body {
			t.Errorf("%s %s by %q = %d %s, want %d %s",
				tt.method, tt.path, tt.key, status, body, tt.status, tt.body)
		}
	}
}
