package openapitest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// A Transport is an http.RoundTripper that checks every response against the document.
// [Transport.Faults] returns the differences.
type Transport struct {
	http.RoundTripper // nil means http.DefaultTransport

	mu     sync.Mutex
	faults []error
}

// RoundTrip sends a request, and checks its response.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	next := t.RoundTripper
	if next == nil {
		next = http.DefaultTransport
	}

	res, err := next.RoundTrip(r)
	if err != nil || res.StatusCode == http.StatusSwitchingProtocols || res.Header.Get("X-Request-Id") == "" {
		return res, err // no request ID: net/http responded before our handlers ran, as to malformed requests
	}

	var body []byte
	if isJSON(res.Header) {
		body, err = io.ReadAll(res.Body)
		_ = res.Body.Close() // the body was read to its end, or failed
		// Callers get the same bytes, followed by the same error.
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
		if err != nil {
			return res, nil
		}
	}

	if fault := Ours().Check(r.Method, r.URL.String(), res.StatusCode, res.Header, body); fault != nil {
		t.mu.Lock()
		t.faults = append(t.faults, fault)
		t.mu.Unlock()
	}
	return res, nil
}

// isJSON reports whether a body is JSON, and so has a schema. Other bodies, such as media, are not
// buffered.
func isJSON(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.HasSuffix(kind, "json")
}

// failing is the end of a body: io.EOF, or the error that interrupted it.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// Faults returns the differences found since the last call.
func (t *Transport) Faults() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.faults
	t.faults = nil
	return found
}

// CheckRecorded checks a handler's recorded response against the document.
func CheckRecorded(r *http.Request, rec *httptest.ResponseRecorder) error {
	var body []byte
	if isJSON(rec.Header()) || rec.Header().Get("Content-Type") == "" {
		body = rec.Body.Bytes()
	}
	return Ours().Check(r.Method, r.URL.String(), rec.Code, rec.Header(), body)
}
