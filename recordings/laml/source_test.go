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
	"testing"
	"time"

	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

// TestSource shows that a source returns the recordings on all pages with their calls, and opens
// their media. Wrong credentials are an error.
func TestSource(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	want := s.upload(t, speech, url.Values{"CallSid": {"c"}, "From": {"+14155550134"}, "To": {"1000"},
		"Direction": {"inbound"}, "Track": {"inbound"}, "StartTime": {"2026-11-20T10:11:12Z"}}.Encode())
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
	about := recordings.Metadata{CallSid: "c", From: "+14155550134", To: "1000", Direction: "inbound",
		Source: "StartCallRecordingApi", Track: "inbound",
		StartTime: time.Date(2026, 11, 20, 10, 11, 12, 0, time.UTC)}
	if got := found[want]; len(found) != 101 || got.Metadata != about || got.Status != recordings.Completed {
		t.Errorf("%d recordings, and the one of the call is %+v, want 101 and %+v", len(found), got.Metadata, about)
	}

	media, err := source.Open(t.Context(), found[want])
	if err != nil {
		t.Fatal(err)
	}
	defer media.Close()
	if got, err := io.ReadAll(media); err != nil || !bytes.Equal(got, wav) || media.Size != int64(len(wav)) {
		t.Errorf("the media has %d bytes, %v, and differs from the file", len(got), err)
	}

	circle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.FormValue("Page"))
		fmt.Fprintf(w, `{"recordings": [], "next_page_uri": "/list?Page=%d"}`, (page+1)%3)
	}))
	defer circle.Close()
	var failed error
	for _, err := range (laml.Source{Base: circle.URL, AccountID: s.project, Token: key}).Recordings(t.Context()) {
		failed = err
	}
	if failed == nil || !strings.Contains(failed.Error(), "was read before") {
		t.Errorf("pages in a circle end with %v, want an error", failed)
	}

	source.Token = "wrong"
	for _, err := range source.Recordings(t.Context()) {
		if err == nil {
			t.Error("wrong credentials are accepted")
		}
	}
}

// TestSourceWithoutOriginal shows that the media is requested as WAV if a service rejects the
// parameter for the uploaded file, or sends a file without a header or a type. Other refusals are
// errors.
func TestSourceWithoutOriginal(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		kind   string
		want   string // "" for an error
	}{
		"the file":          {200, "audio/mpeg", "original"},
		"a refusal":         {400, "application/json", "converted"},
		"a file of no type": {200, "application/octet-stream", "converted"},
		"not found":         {404, "application/json", ""},
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("Original") == "" {
				w.Header().Set("Content-Type", "audio/x-wav")
				fmt.Fprint(w, "converted")
				return
			}
			w.Header().Set("Content-Type", tt.kind)
			w.WriteHeader(tt.status)
			fmt.Fprint(w, "original")
		}))
		defer service.Close()

		media, err := laml.Source{Base: service.URL}.Open(t.Context(), laml.SourceRecording{Sid: "s"})
		if (err == nil) != (tt.want != "") {
			t.Errorf("%s: Open = %v, want an error only if no media is expected", name, err)
		}
		if err != nil {
			continue
		}
		defer media.Close()
		if got, err := io.ReadAll(media); string(got) != tt.want || err != nil {
			t.Errorf("%s: the media is %q, %v, want %q", name, got, err, tt.want)
		}
	}
}
