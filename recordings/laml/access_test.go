package laml_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

func TestAccess(t *testing.T) {
	s := newServer(t)
	own := s.upload(t, speech, "To=/private/alice&CallSid=mine")
	other := s.upload(t, speech, "CallSid=other")
	nobody := func(*http.Request) {}
	wrong := func(r *http.Request) { r.SetBasicAuth(s.project, "wrong") }
	twice := func(r *http.Request) {
		s.basic(r)
		r.Header.Add("Authorization", r.Header.Get("Authorization"))
	}

	wav := body("audio/wav", corpusFile(t, "one_sample.wav"))
	tests := []struct {
		method, path string
		as           option
		status, code int
	}{
		{"GET", "/Recordings", nobody, 401, 20003},
		{"GET", "/Recordings", wrong, 401, 20003},
		{"GET", "/Recordings", twice, 401, 20003},
		{"GET", "/Recordings.json", nobody, 401, 20003},
		{"POST", "/Recordings", nobody, 401, 20003},
		{"DELETE", "/Recordings/" + own, nobody, 401, 20003},
		{"GET", "/Recordings/" + own + ".json", nobody, 401, 20003},
		{"GET", "/Calls/mine/Recordings", nobody, 401, 20003},
		{"GET", "/Calls/mine/Recordings/" + own, nobody, 401, 20003},
		{"GET", "/Conferences/x/Recordings", nobody, 401, 20003},
		{"POST", "/Recordings?CallSid=mine&Status=in-progress", nobody, 401, 20003},
		{"POST", "/Calls/mine/Recordings", nobody, 401, 20003},
		{"POST", "/Calls/mine/Recordings/" + own, nobody, 401, 20003},
		{"POST", "/Conferences/mine/Recordings/" + own, nobody, 401, 20003},
		{"GET", "/Recordings/" + own + "/Transcriptions", nobody, 401, 20003},
		{"GET", "/Recordings/" + other + "/Transcriptions", asSubscriber, 404, 20404},
		{"POST", "/Recordings?CallSid=mine&Status=in-progress", asSubscriber, 403, 20403},
		{"POST", "/Calls/mine/Recordings", asSubscriber, 403, 20403},
		{"POST", "/Calls/mine/Recordings/" + own, asSubscriber, 403, 20403},
		{"GET", "/Recordings/" + own + ".json", asSubscriber, 200, 0},
		{"GET", "/Calls/mine/Recordings/" + own + ".json", asSubscriber, 200, 0},
		{"GET", "/Recordings/" + other + ".json", asSubscriber, 404, 20404},
		{"DELETE", "/Recordings/" + own, asSubscriber, 403, 20403},
		{"DELETE", "/Recordings/" + other, asSubscriber, 403, 20403},
		{"POST", "/Recordings", asSubscriber, 403, 20403},
		{"GET", "/Calls/other/Recordings/" + own, s.basic, 404, 20404},
		{"GET", "/Calls/mine/Recordings/" + own + ".wav", s.basic, 404, 20404},
		{"DELETE", "/Conferences/mine/Recordings/" + own, s.basic, 404, 20404},
		{"GET", "/Calls/mine/Recordings/" + own, s.basic, 200, 0},
		{"HEAD", "/Recordings/" + own + ".json", s.basic, 200, 0},
		{"DELETE", "/Calls/other/Recordings/" + other + ".json", s.basic, 204, 0},
	}

	for _, tt := range tests {
		a := s.do(t, tt.method, s.path(tt.path), tt.as, wav)
		name := tt.method + " " + tt.path
		if tt.code != 0 {
			wantError(t, name, a, tt.status, tt.code)
		} else if a.StatusCode != tt.status {
			t.Errorf("%s = %d %s, want %d", name, a.StatusCode, a.body, tt.status)
		}
		if tt.status != 401 {
			wantHeader(t, name, a.Header, "WWW-Authenticate", "")
		} else {
			challenge := a.Header.Get("WWW-Authenticate")
			if description := `, error_description="credentials are`; !strings.Contains(challenge, description) {
				t.Errorf("%s: WWW-Authenticate = %q, want it to contain %q", name, challenge, description)
			}
		}
		wantHeader(t, name, a.Header, "Cache-Control", "no-store")
	}

	seen := read[list](t, s.do(t, "GET", s.path("/Recordings"), asSubscriber)).sids()
	if !slices.Equal(seen, []string{own}) {
		t.Errorf("the subscriber sees %q, want only %s", seen, own)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, speech, "")
	tests := []struct {
		method, path string
		status, code int
		allow        string
	}{
		{"GET", "/api/laml/2010-04-01/", 404, 20404, ""},
		{"GET", "/api/laml/2008-08-01/Accounts", 404, 20404, ""},
		{"GET", "/2010-04-01/Accounts/" + s.project + ".json", 404, 20404, ""},
		{"GET", s.path("/Recordings/" + s.project + "/Transcriptions.json"), 404, 20404, ""},
		{"DELETE", s.path("/Recordings/" + sid + "/Transcriptions.json"), 405, 20405, "GET, HEAD"},
		{"POST", s.path("/Recordings/" + sid), 405, 20405, "DELETE, GET, HEAD, OPTIONS"},
		{"PUT", s.path("/Recordings"), 405, 20405, "GET, HEAD, POST"},
		{"PATCH", s.path("/Recordings.json"), 405, 20405, "GET, HEAD, POST"},
		{"PUT", s.path("/Calls/c/Recordings.json"), 405, 20405, "GET, HEAD, POST"},
		{"PUT", s.path("/Conferences/c/Recordings/" + sid), 405, 20405, "DELETE, GET, HEAD, POST"},
		{"PUT", s.path("/Conferences/c/Recordings"), 405, 20405, "GET, HEAD, POST"},
	}

	for _, tt := range tests {
		a := s.do(t, tt.method, tt.path, s.basic)
		wantError(t, tt.method+" "+tt.path, a, tt.status, tt.code)
		wantHeader(t, tt.method+" "+tt.path, a.Header, "Allow", tt.allow)
	}
}

// TestUnavailable shows that responses contain Retry-After while the database is unavailable.
func TestUnavailable(t *testing.T) {
	s := newServer(t, func(_ *server, _ *recordings.Config, c *laml.Config) {
		c.Credentials = func(*http.Request) (recordings.Owner, error) {
			return recordings.Owner{}, problem.New(problem.Unavailable, "unavailable", "the database is unavailable")
		}
	})
	a := s.do(t, "GET", s.path("/Recordings"), s.basic)
	wantError(t, "a list", a, 503, 20503)
	wantHeader(t, "a list", a.Header, "Retry-After", "1")
}
