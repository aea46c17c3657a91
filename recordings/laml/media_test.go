package laml_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings/laml"
)

const speech = "speech_s16_8k.wav"

func TestMediaHeaders(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, speech, "")
	file := corpusFile(t, speech)
	want := map[string]string{
		"Content-Type":                 "audio/x-wav",
		"Content-Length":               fmt.Sprint(len(file)),
		"Content-Disposition":          `inline; filename="` + sid + `.wav"`,
		"Accept-Ranges":                "bytes",
		"ETag":                         `"90ca927ecb0a6a97b0fd6d07f8b90ffebada16a846cdfa720b7e2f3e65aade32"`,
		"Last-Modified":                s.clock.now().Format(http.TimeFormat),
		"Cache-Control":                "public, max-age=300, must-revalidate",
		"Pragma":                       "",
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; sandbox",
		"X-Robots-Tag":                 "noindex, nofollow, noarchive",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "cross-origin",
		"Access-Control-Allow-Origin":  "*",
		"Content-Encoding":             "",
	}

	wantMedia := func(method, path string, body []byte, varies bool) {
		t.Helper()
		name := method + " " + path
		a := s.do(t, method, path, header("Accept-Encoding", "gzip"))
		if a.StatusCode != 200 {
			t.Errorf("%s = %d, want 200", name, a.StatusCode)
		}
		wantFile(t, name, a, body)
		for field, value := range want {
			wantHeader(t, name, a.Header, field, value)
		}
		if vary := a.Header.Get("Vary"); (vary != "") != varies {
			t.Errorf("%s has the header Vary %q, want a Vary header: %v", name, vary, varies)
		}
	}
	for _, root := range []string{"/api/laml/2010-04-01", "/2010-04-01"} {
		path := root + "/Accounts/" + s.project + "/Recordings/" + sid
		wantMedia("GET", path, file, true)
		wantMedia("GET", path+".wav", file, false)
		wantMedia("HEAD", path, nil, true)
		wantMedia("HEAD", path+".wav", nil, false)
	}
}

func TestMediaRanges(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".wav")
	file := corpusFile(t, speech)
	size := len(file)
	etag := s.do(t, "HEAD", path).Header.Get("ETag")
	tests := []struct {
		ranges  string
		ifRange string
		status  int
		want    []byte // nil if the body is not part of the file
	}{
		{"bytes=0-0", "", 206, file[:1]},
		{"bytes=44-", "", 206, file[44:]},
		{"bytes=-100", "", 206, file[size-100:]},
		{"bytes=0-99999999", "", 206, file},
		{fmt.Sprintf("bytes=%d-", size), "", 416, nil},
		{"bytes=9-1", "", 416, nil},
		{"bytes=--1", "", 416, nil},
		{"bytes=-0", "", 416, nil}, // the last 0 bytes (RFC 9110, section 14.1.2)
		{"bytes= - 00", "", 416, nil},
		{"bytes=-0,-0", "", 416, nil},
		{"bytes=0-0,-0", "", 206, file[:1]}, // only the valid range
		{"bytes=-0", `"other"`, 200, file},
		{"lines=0-1", "", 200, file}, // an unknown unit
		{"bytes=0-9", etag, 206, file[:10]},
		{"bytes=0-9", `"other"`, 200, file},
		{"bytes=0-9", "W/" + etag, 200, file},
		{"bytes=0-0,2-2,4-4,6-6", "", 206, nil},      // the maximum number of ranges
		{"bytes=0-0,2-2,4-4,6-6,8-8", "", 200, file}, // one range too many, so the whole file
	}

	for _, tt := range tests {
		opts := []option{header("Range", tt.ranges)}
		if tt.ifRange != "" {
			opts = append(opts, header("If-Range", tt.ifRange))
		}
		name := fmt.Sprintf("Range %s, If-Range %s", tt.ranges, tt.ifRange)
		a := s.do(t, "GET", path, opts...)
		if a.StatusCode != tt.status {
			t.Errorf("%s = %d, want %d", name, a.StatusCode, tt.status)
		}
		if tt.want != nil {
			wantFile(t, name, a, tt.want)
		}
	}

	unchanged := s.do(t, "GET", path, header("If-None-Match", etag))
	if unchanged.StatusCode != 304 || len(unchanged.body) != 0 {
		t.Errorf("If-None-Match = %d with %d bytes, want 304 without a body",
			unchanged.StatusCode, len(unchanged.body))
	}
}

func TestWhoGetsJSON(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, speech, ""))
	wrong := func(r *http.Request) { r.SetBasicAuth(s.project, "wrong") }
	foreign := func(r *http.Request) { r.SetBasicAuth(s.addProject(t), key) }
	json := header("Accept", "application/json")
	tests := []struct {
		name         string
		opts         []option
		status       int
		wantDocument bool // instead of the media
	}{
		{"nobody", nil, 200, false},
		{"nobody, JSON", []option{json}, 200, false},
		{"wrong key, JSON", []option{wrong, json}, 200, false},
		{"key", []option{s.basic}, 200, false},
		{"key, anything", []option{s.basic, header("Accept", "audio/*;q=0.9, */*")}, 200, false},
		{"key, JSON", []option{s.basic, header("Accept", "text/html, Application/JSON;q=0.5")}, 200, true},
		{"another's key, JSON", []option{foreign, json}, 404, true},
	}

	for _, tt := range tests {
		a := s.do(t, "GET", path, tt.opts...)
		if a.StatusCode != tt.status {
			t.Errorf("%s = %d, want %d", tt.name, a.StatusCode, tt.status)
		}
		wantHeader(t, tt.name, a.Header, "Vary", "Accept, Authorization")
		if tt.wantDocument {
			wantHeader(t, tt.name, a.Header, "Content-Type", "application/json; charset=utf-8")
			wantHeader(t, tt.name, a.Header, "Cache-Control", "no-store")
		} else {
			wantHeader(t, tt.name, a.Header, "Content-Type", "audio/x-wav")
			wantHeader(t, tt.name, a.Header, "Cache-Control", "public, max-age=300, must-revalidate")
		}
	}
}

func TestUnknownIsOneAnswer(t *testing.T) {
	s := newServer(t)
	deleted := s.upload(t, speech, "")
	gone := s.do(t, "DELETE", s.path("/Recordings/"+deleted), s.basic)
	if gone.StatusCode != 204 || len(gone.body) != 0 {
		t.Fatalf("DELETE = %d %q, want 204 without a body", gone.StatusCode, gone.body)
	}

	sid := s.upload(t, speech, "")
	home := s.project
	s.project = s.addProject(t)
	unknown := "7f2c3a52-0b1d-4f6e-9a57-1c2d3e4f5a6b"
	foreign := "/api/laml/2010-04-01/Accounts/" + home + "/Recordings/" + sid
	want := s.do(t, "GET", s.path("/Recordings/"+unknown+".wav"))
	wantError(t, "an unknown recording", want, 404, 20404)
	tests := []struct{ method, path string }{
		{"GET", s.path("/Recordings/" + sid)}, // another project's recording in this account
		{"GET", s.path("/Recordings/" + sid + ".wav")},
		{"GET", s.path("/Recordings/" + sid + ".json")},
		{"GET", foreign + ".json"}, // another project's recording
		{"DELETE", foreign},
		{"DELETE", s.path("/Recordings/" + sid)},
		{"GET", "/api/laml/2010-04-01/Accounts/" + home + "/Recordings/" + deleted + ".wav"},
		{"GET", "/api/laml/2010-04-01/Accounts/" + home + "/Recordings"},
		{"GET", "/api/laml/2010-04-01/Accounts/" + home + "/Calls/x/Recordings"},
		{"POST", "/api/laml/2010-04-01/Accounts/" + home + "/Recordings"},
		{"GET", s.path("/Recordings/" + unknown + ".ogg")},
		{"GET", s.path("/Recordings/" + strings.ToUpper(sid) + ".wav")},
		{"GET", s.path("/Recordings/" + sid + ".wav.wav")},
		{"GET", s.path("/Recordings/" + sid + ".")},
		{"GET", s.path("/Recordings/.wav")},
		{"GET", s.path("/Recordings/..%2f..%2fetc%2fpasswd")},
		{"GET", s.path("/Recordings/..%2f..%2fetc%2fpasswd.wav")},
		{"GET", s.path("/Recordings/..%5c..%5cx.wav")},
		{"GET", s.path("/Recordings/" + sid + "%00.wav")},
		{"GET", s.path("/Recordings/%ff%fe.wav")},
		{"GET", s.path("/Recordings/" + strings.Repeat("a", 5<<10))},
		{"GET", "/2010-04-01/Accounts/%00/Recordings/" + sid + ".wav"},
		{"GET", "/2010-04-01/Accounts/" + s.project + "/Calls/x/Recordings/" + sid},
		{"DELETE", s.path("/Recordings/" + sid + ".wav")},
	}

	for _, tt := range tests {
		got := s.do(t, tt.method, tt.path, s.basic)
		if got.StatusCode != 404 {
			t.Errorf("%s %.120s = %d, want 404", tt.method, tt.path, got.StatusCode)
		}
		if !bytes.Equal(got.body, want.body) {
			t.Errorf("%s %.120s = %.200s, want %s", tt.method, tt.path, got.body, want.body)
		}
	}

	s.project = home
	if got := s.do(t, "GET", s.path("/Recordings/"+sid+".wav")); got.StatusCode != 200 {
		t.Errorf("GET of the recording after all requests = %d, want 200", got.StatusCode)
	}
}

func TestPreflight(t *testing.T) {
	s := newServer(t)
	for ext, want := range map[string]string{"": "*", ".wav": "*", ".json": ""} {
		a := s.do(t, "OPTIONS", s.path("/Recordings/"+s.project+ext), header("Origin", "https://app.example"),
			header("Access-Control-Request-Method", "GET"))
		wantStatus(t, fmt.Sprintf("preflight of %q", ext), a, 204)
		wantHeader(t, fmt.Sprintf("preflight of %q", ext), a.Header, "Access-Control-Allow-Origin", want)
		headers := a.Header.Get("Access-Control-Allow-Headers")
		if want != "" && !strings.Contains(headers, "DPoP") {
			t.Errorf("preflight of %q allows the headers %q, want DPoP among them", ext, headers)
		}
	}
}

// A readerFrom is a ResponseWriter with a ReadFrom method, like that of a plain HTTP connection. It
// records whether ReadFrom was called.
type readerFrom struct {
	*httptest.ResponseRecorder
	called bool
}

func (w *readerFrom) ReadFrom(src io.Reader) (int64, error) {
	w.called = true
	return io.Copy(w.ResponseRecorder, src)
}

// TestMediaReachesReadFrom shows that all middleware forwards ReadFrom. Otherwise, the kernel could
// not send the file itself (sendfile).
func TestMediaReachesReadFrom(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".wav")
	log := slog.New(slog.DiscardHandler)
	api := laml.New(laml.Config{Recordings: s.rules, Log: log})
	h := web.Outer(api.Handler(), log, func(string, int, time.Duration) {})
	for _, ranges := range []string{"", "bytes=100-199"} {
		w := &readerFrom{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header.Set("Range", ranges)
		h.ServeHTTP(w, r)
		if !w.called {
			t.Errorf("Range %q: the writer's ReadFrom was not called", ranges)
		}
	}
}
