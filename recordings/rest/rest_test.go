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

// A server is the API on top of real rules, rows and bytes.
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
		Recordings: s.rules,
		Credentials: func(r *http.Request) (recordings.Owner, error) {
			project, key, ok := web.Basic(r)
			if key == "away" {
				return recordings.Owner{}, problem.New(problem.Unavailable, "unavailable", "the database is away")
			}
			if !ok || key != "key" && key != "subscriber" {
				return recordings.Owner{}, problem.NoCredentials()
			}
			o := recordings.Owner{ProjectID: project}
			if key == "subscriber" {
				o.SubscriberID = uuid.NewString()
			}
			return o, nil
		},
		MediaURLs: func(*http.Request, recordings.Owner) (func(recordings.Recording) string, error) {
			return func(r recordings.Recording) string {
				if !r.HasMedia() {
					return ""
				}
				return "https://example.com/" + r.Sid
			}, nil
		},
	})
	s.Server = httptest.NewServer(api.Handler())
	t.Cleanup(s.Close)

	return s
}

func (s *server) upload(t *testing.T, file string, m recordings.Metadata) recordings.Recording {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}

	s.now = s.now.Add(time.Second)
	rec, _, err := s.rules.Ingest(t.Context(), recordings.Upload{
		ProjectID: s.project, Body: bytes.NewReader(b), Describe: func() (recordings.Description, error) {
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
	if retry := res.Header.Get("Retry-After"); (retry == "1") != (res.StatusCode == 503) {
		t.Errorf("%s %s = %d: Retry-After = %q", method, path, res.StatusCode, retry)
	}

	return res.StatusCode, strings.TrimSpace(string(b))
}

func TestDocuments(t *testing.T) {
	s := newServer(t)
	call := s.upload(t, "speech_stereo_8k.wav", recordings.Metadata{CallSid: "c", Track: "both"})
	live, _, err := s.rules.Announce(t.Context(), s.project,
		recordings.Description{Metadata: recordings.Metadata{ConferenceSid: "room"}})
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
		if status, body := s.do(t, "GET", rest.Prefix+"/"+tt.sid, "key"); status != 200 || body != tt.want {
			t.Errorf("GET = %d %s\nwant %s", status, body, tt.want)
		}
	}
}

func TestPages(t *testing.T) {
	s := newServer(t)
	var want []string
	for range 5 {
		want = append([]string{s.upload(t, "one_sample.wav", recordings.Metadata{}).Sid}, want...)
	}

	var got []string
	pages := 0
	for path := rest.Prefix + "?page_size=2"; path != ""; pages++ {
		var p struct {
			Links struct{ Self, First, Next, Prev string }
			Data  []struct{ ID string }
		}
		status, body := s.do(t, "GET", path, "key")
		if err := json.Unmarshal([]byte(body), &p); status != 200 || err != nil {
			t.Fatalf("GET %s = %d %s, %v", path, status, body, err)
		}

		for _, d := range p.Data {
			got = append(got, d.ID)
		}
		if (p.Links.Prev == "") != (pages == 0) ||
			!strings.HasPrefix(p.Links.First, rest.Prefix+"?page_number=0") || p.Links.Self == "" {
			t.Errorf("page %d has the links %+v", pages, p.Links)
		}
		path = p.Links.Next
	}

	if fmt.Sprint(got) != fmt.Sprint(want) || pages != 3 {
		t.Errorf("%d pages contain %q, want three with %q", pages, got, want)
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
		if status, body := s.do(t, tt.method, rest.Prefix+tt.path, tt.key); status != tt.status || body != tt.body {
			t.Errorf("%s %s by %q = %d %s, want %d %s", tt.method, tt.path, tt.key, status, body, tt.status, tt.body)
		}
	}
}
