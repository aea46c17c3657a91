package laml_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

// TestSource shows that a source returns the recordings on all pages with the metadata of their
// calls, and opens their media. Wrong credentials are an error.
func TestSource(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	sid := s.upload(t, speech, url.Values{
		"CallSid":   {"c"},
		"From":      {"+14155550134"},
		"To":        {"1000"},
		"Direction": {"inbound"},
		"Track":     {"inbound"},
		"StartTime": {"2026-11-20T10:11:12Z"},
	}.Encode())
	for i := range 100 {
		s.upload(t, "one_sample.wav", fmt.Sprint("ConferenceSid=r", i))
	}

	source := laml.Source{Base: s.URL, AccountID: s.project, Token: key}
	found := make(map[string]laml.SourceRecording)
	for r, err := range source.Recordings(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found[r.Sid] = r
	}
	if len(found) != 101 {
		t.Errorf("%d recordings, want 101", len(found))
	}
	want := recordings.Metadata{
		CallSid:   "c",
		From:      "+14155550134",
		To:        "1000",
		Direction: "inbound",
		Source:    "StartCallRecordingApi",
		Track:     "inbound",
		StartTime: time.Date(2026, 11, 20, 10, 11, 12, 0, time.UTC),
	}
	if got := found[sid].Metadata; got != want {
		t.Errorf("the recording of the call has the metadata %+v, want %+v", got, want)
	}
	if got := found[sid].Status; got != recordings.Completed {
		t.Errorf("the recording of the call has the status %s, want completed", got)
	}

	media, err := source.Open(t.Context(), found[sid])
	if err != nil {
		t.Fatal(err)
	}
	defer media.Close()
	if media.Size != int64(len(wav)) {
		t.Errorf("the size of the media is %d, want %d", media.Size, len(wav))
	}
	content, err := io.ReadAll(media)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, wav) {
		t.Errorf("the media has %d bytes and differs from the file", len(content))
	}

	source.Token = "wrong"
	for _, err := range source.Recordings(t.Context()) {
		if err == nil {
			t.Error("wrong credentials are accepted")
		}
	}
}

// TestSourceInACircle shows that a source notices if the pages of a list never end.
func TestSourceInACircle(t *testing.T) {
	circle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.FormValue("Page"))
		fmt.Fprintf(w, `{"recordings": [], "next_page_uri": "/list?Page=%d"}`, (page+1)%3)
	}))
	defer circle.Close()
	source := laml.Source{Base: circle.URL, AccountID: "a", Token: key}
	var failed error
	for _, err := range source.Recordings(t.Context()) {
		failed = err
	}
	if failed == nil || !strings.Contains(failed.Error(), "was read before") {
		t.Errorf("pages in a circle end with %v, want an error", failed)
	}
}

// TestSourceBusy shows that a request is repeated while a service is busy, but not after other
// errors.
func TestSourceBusy(t *testing.T) {
	laml.DoNotWait(t)
	for status, want := range map[int]int64{429: 3, 503: 3, 403: 1, 500: 1} {
		var requests atomic.Int64
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1) <= 2 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(status)
				return
			}
			fmt.Fprint(w, "media")
		}))
		_, err := laml.Source{Base: service.URL}.Open(t.Context(), laml.SourceRecording{Sid: "s"})
		service.Close()
		if opened := err == nil; opened != (want == 3) {
			t.Errorf("after the status %d, Open = %v, want success: %v", status, err, want == 3)
		}
		if n := requests.Load(); n != want {
			t.Errorf("after the status %d there were %d requests, want %d", status, n, want)
		}
	}
}

// TestSourceAlwaysBusy shows that a source gives up if a service stays busy.
func TestSourceAlwaysBusy(t *testing.T) {
	laml.DoNotWait(t)
	var requests atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "Mon, 30 Nov 2020 08:00:00 GMT")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer service.Close()
	_, err := laml.Source{Base: service.URL}.Open(t.Context(), laml.SourceRecording{Sid: "s"})
	if err == nil || !strings.Contains(err.Error(), "answered 503") {
		t.Errorf("Open of a busy service = %v, want an error with the status", err)
	}
	if n := requests.Load(); n != 7 {
		t.Errorf("%d requests, want 7", n)
	}
}

// serviceWithoutOriginal returns a service that answers requests for the original with this status
// and type, and other requests with a converted file.
func serviceWithoutOriginal(t *testing.T, status int, mediaType string) laml.Source {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("Original") == "" {
			w.Header().Set("Content-Type", "audio/x-wav")
			fmt.Fprint(w, "converted")
			return
		}
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		fmt.Fprint(w, "original")
	}))
	t.Cleanup(service.Close)
	return laml.Source{Base: service.URL}
}

// TestSourceWithoutOriginal shows that the media is requested as WAV if a service rejects the
// parameter for the uploaded file, or sends a file without a header or a type. Other refusals are
// errors.
func TestSourceWithoutOriginal(t *testing.T) {
	tests := []struct {
		name      string
		status    int
		mediaType string
		want      string
	}{
		{"the file", 200, "audio/mpeg", "original"},
		{"a refusal", 400, "application/json", "converted"},
		{"a file without a type", 200, "application/octet-stream", "converted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := serviceWithoutOriginal(t, tt.status, tt.mediaType)
			media, err := source.Open(t.Context(), laml.SourceRecording{Sid: "s"})
			if err != nil {
				t.Fatal(err)
			}
			defer media.Close()
			got, err := io.ReadAll(media)
			if err != nil || string(got) != tt.want {
				t.Errorf("the media is %q, %v, want %q", got, err, tt.want)
			}
		})
	}

	source := serviceWithoutOriginal(t, 404, "application/json")
	media, err := source.Open(t.Context(), laml.SourceRecording{Sid: "s"})
	if err == nil {
		media.Close()
		t.Error("Open of unknown media succeeds, want an error")
	}
}
