package laml_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/selvage/selvage/recordings/laml"
)

// A dropped is a ResponseWriter whose client disconnects after the first thousand bytes.
type dropped struct {
	*httptest.ResponseRecorder
	gone func()
}

func (w *dropped) Write(p []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(p)
	if w.Body.Len() > 1000 {
		w.gone()
	}
	return n, err
}

// TestMP3EndsWithItsClient shows that encoding for a disconnected client ends after the current
// piece, so that another request gets a turn.
func TestMP3EndsWithItsClient(t *testing.T) {
	s := newServer(t)
	api := laml.New(laml.Config{Recordings: s.rules, Encoders: 1})
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".mp3")

	for range 3 { // more than the number of turns
		ctx, gone := context.WithCancel(t.Context())
		w := &dropped{httptest.NewRecorder(), gone}
		api.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", path, nil))
		if n := w.Body.Len(); n < 1000 || n > 20_000 {
			t.Errorf("after the client disconnected, %d bytes were written, want 1,000 to 20,000", n)
		}
	}

	w := httptest.NewRecorder()
	api.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	if n := w.Body.Len(); fmt.Sprint(n) != w.Header().Get("Content-Length") {
		t.Errorf("a client that stays gets %d bytes, want %s", n, w.Header().Get("Content-Length"))
	}
}

// A flushed is a ResponseWriter that records how much had been written at each flush.
type flushed struct {
	*httptest.ResponseRecorder
	lengths []int
}

func (w *flushed) Flush() { w.lengths = append(w.lengths, w.Body.Len()) }

func TestFirstFrameIsSentAtOnce(t *testing.T) {
	s := newServer(t)
	w := &flushed{ResponseRecorder: httptest.NewRecorder()}
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".mp3")
	api := laml.New(laml.Config{Recordings: s.rules})
	api.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	if len(w.lengths) != 1 {
		t.Fatalf("flushed at %v bytes, want one flush", w.lengths)
	}
	if n := w.lengths[0]; n == 0 || n > 1000 {
		t.Errorf("flushed after %d bytes, want 1 to 1000, for the first frame", n)
	}
}

// TestOffload shows that if the reverse proxy sends the file, the response has no body, but has the
// headers that describe the file.
func TestOffload(t *testing.T) {
	s := newServer(t)
	mono := s.upload(t, speech, "")
	both := s.upload(t, stereo, "")
	api := laml.New(laml.Config{
		Recordings: s.rules,
		Offload: func(key string) (string, string) {
			return "X-Accel-Redirect", "/files/" + key
		},
	})
	send := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, s.path("/Recordings/"+path), http.NoBody)
		r.Header.Set("Range", "bytes=0-9")
		api.Handler().ServeHTTP(w, r)
		return w
	}

	for _, path := range []string{mono, mono + ".wav", both + ".wav", both + ".wav?Original=true"} {
		for _, method := range []string{"GET", "HEAD"} {
			name := method + " " + path
			w := send(method, path)
			if w.Code != 200 || w.Body.Len() != 0 {
				t.Errorf("%s = %d with %d bytes, want 200 without a body", name, w.Code, w.Body.Len())
			}
			if file := w.Header().Get("X-Accel-Redirect"); !strings.HasPrefix(file, "/files/0") {
				t.Errorf("%s redirects to %q, want a path that begins with /files/0", name, file)
			}
			wantHeader(t, name, w.Header(), "ETag", "")
			wantHeader(t, name, w.Header(), "Content-Type", "audio/x-wav")
			if w.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("%s has no Content-Security-Policy", name)
			}
		}
	}

	for _, path := range []string{mono + ".mp3", both + ".wav?Channel=1", mono + "0.wav"} {
		w := send("GET", path)
		wantHeader(t, "GET "+path, w.Header(), "X-Accel-Redirect", "")
		if w.Body.Len() == 0 {
			t.Errorf("GET %s = %d without a body, want a body", path, w.Code)
		}
	}
}
