package laml_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkWAV fetches a recording over a connection.
func BenchmarkWAV(b *testing.B) {
	for _, bm := range []struct{ name, method, ranges string }{
		{"whole", "GET", ""},
		{"4KiB", "GET", "bytes=44-4139"},
		{"head", "HEAD", ""},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := newServer(b)
			url := s.URL + s.path("/Recordings/"+s.upload(b, speech, "")+".wav")
			b.ReportAllocs()

			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), bm.method, url, nil)
				if err != nil {
					b.Fatal(err)
				}
				if bm.ranges != "" {
					r.Header.Set("Range", bm.ranges)
				}

				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}

				n, err := io.Copy(io.Discard, res.Body)
				if err != nil || res.StatusCode >= 400 {
					b.Fatalf("status %d, %d bytes, %v", res.StatusCode, n, err)
				}
				b.SetBytes(n)
				_ = res.Body.Close() // the whole body has been read
			}
		})
	}
}

// BenchmarkList lists a page of fifty recordings, from the rows to the document.
func BenchmarkList(b *testing.B) {
	s := newServer(b)
	for range 51 {
		s.upload(b, speech, "CallSid=c&From=/private/alice")
	}
	r := httptest.NewRequest("GET", s.path("/Recordings?CallSid=c"), nil)
	s.basic(r)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
}
