package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/selvage/selvage/openapi/openapitest"
)

// An Option changes a request before it is sent.
type Option func(*http.Request)

// Basic sets the credentials of HTTP Basic authentication.
func Basic(name, secret string) Option {
	return func(r *http.Request) { r.SetBasicAuth(name, secret) }
}

// Bearer sets an access token as the credentials.
func Bearer(token string) Option {
	return Header("Authorization", "Bearer "+token)
}

// Header sets a header field.
func Header(name, value string) Option {
	return func(r *http.Request) {
		if strings.EqualFold(name, "Host") {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
}

// AddHeader adds a header field, and keeps fields that have the same name.
func AddHeader(name, value string) Option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

// JSON sends v as a JSON body. A string is sent unchanged, so that tests can send malformed
// JSON.
func JSON(v any) Option {
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // the test's own value cannot be encoded
		}
		text = string(b)
	}
	return Body("application/json", []byte(text))
}

// Form sends a form as the body.
func Form(v url.Values) Option {
	return Body("application/x-www-form-urlencoded", []byte(v.Encode()))
}

// Body sends a body of the given type. If the type is "", the request has no Content-Type.
func Body(contentType string, body []byte) Option {
	return func(r *http.Request) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.ContentLength = int64(len(body))
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
	}
}

// An Answer is a response whose body has been read completely.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	what   string // method and path of the request, for messages
}

// client does not follow redirects, so that tests can check their targets.
var client = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     documented,
}

// documented checks every response against the OpenAPI document.
var documented = &openapitest.Transport{RoundTripper: connections}

// connections closes idle connections before a server does. If a server closed an idle connection
// just when a request is sent on it, the request would fail.
var connections = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second, DisableCompression: true}

// CloseIdle closes the connections that are idle, so that a test can count those that a server
// keeps open.
func CloseIdle() { connections.CloseIdleConnections() }

// reportFaults fails the test if any response so far did not match the OpenAPI document.
func reportFaults(t T) {
	t.Helper()
	for _, fault := range documented.Faults() {
		t.Errorf("%v", fault)
	}
}

// Do sends a request. The target is a path on the server or a complete URL.
func (s *Server) Do(t T, method, target string, opts ...Option) Answer {
	t.Helper()
	if strings.HasPrefix(target, "/") {
		target = s.HTTP + target
	}
	return send(t, client, method, target, opts...)
}

// Get sends a GET request.
func (s *Server) Get(t T, target string, opts ...Option) Answer {
	t.Helper()
	return s.Do(t, http.MethodGet, target, opts...)
}

// Post sends a POST request.
func (s *Server) Post(t T, target string, opts ...Option) Answer {
	t.Helper()
	return s.Do(t, http.MethodPost, target, opts...)
}

func send(t T, c *http.Client, method, target string, opts ...Option) Answer {
	t.Helper()
	a, err := try(c, method, target, opts...)
	reportFaults(t)
	if os.IsTimeout(err) && shared != nil {
		t.Logf("the shared server's goroutines: %s", shared.stacks())
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return a
}

// Try sends a request that may fail, for example because the server is killed at the same time.
func (s *Server) Try(method, target string, opts ...Option) (Answer, error) {
	return s.TryURL(method, s.HTTP+target, opts...)
}

// TryURL is like [Server.Try], but takes a complete URL.
func (s *Server) TryURL(method, target string, opts ...Option) (Answer, error) {
	return try(client, method, target, opts...)
}

func try(c *http.Client, method, target string, opts ...Option) (Answer, error) {
	req, err := http.NewRequest(method, target, nil)
	if err != nil {
		return Answer{}, err
	}
	for _, o := range opts {
		o(req)
	}

	resp, err := c.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()

	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{
		Status: resp.StatusCode,
		Header: resp.Header,
		Body:   body,
		what:   method + " " + req.URL.Path,
	}, nil
}

// Want fails the test immediately unless the answer has one of the statuses.
func (a Answer) Want(t T, statuses ...int) Answer {
	t.Helper()
	for _, s := range statuses {
		if a.Status == s {
			return a
		}
	}
	t.Fatalf("%s = %d %s, want %v", a.what, a.Status, clip(a.Body), statuses)
	return a
}

// Read decodes the answer's JSON into v.
func (a Answer) Read(t T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%s answered %d %s, not JSON: %v", a.what, a.Status, clip(a.Body), err)
	}
}

// Object decodes the answer's JSON object.
func (a Answer) Object(t T) map[string]any {
	t.Helper()
	var v map[string]any
	a.Read(t, &v)
	return v
}

// WantError fails the test immediately unless the answer has the status and its JSON member "error"
// equals code. OAuth errors and most errors of the fabric have this member.
func (a Answer) WantError(t T, status int, code string) Answer {
	t.Helper()
	a.Want(t, status)
	if got := a.Object(t)["error"]; got != code {
		t.Fatalf("%s = %d with error %v, want %q", a.what, a.Status, got, code)
	}
	return a
}

// WantUnauthorized fails the test immediately unless the answer is the 401 of the Call Fabric API.
func (a Answer) WantUnauthorized(t T) Answer {
	t.Helper()
	a.Want(t, http.StatusUnauthorized)
	if got, want := strings.TrimSpace(string(a.Body)), `{"error":"Unauthorized"}`; got != want {
		t.Fatalf("%s = 401 %s, want %s", a.what, got, want)
	}
	return a
}

func clip(b []byte) string {
	const most = 400
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

// StatusIs returns an error unless the answer has the status. Use it with [Eventually].
func (a Answer) StatusIs(status int) error {
	if a.Status != status {
		return fmt.Errorf("%s = %d %s, want %d", a.what, a.Status, clip(a.Body), status)
	}
	return nil
}
