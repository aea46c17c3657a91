package attack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// sendRaw sends bytes over a new connection. It returns the status of the response, and whether the
// server announces that it closes the connection.
func sendRaw(t *testing.T, s *harness.Server, request io.Reader) (status int, closed bool) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	// The server may close the connection before it has read everything.
	go func() { _, _ = io.Copy(conn, request) }()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading the response: %v", err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Close
}

// TestI02Headers shows that requests are refused if the head of the request is too long or
// malformed.
func TestI02Headers(t *testing.T) {
	s := harness.Shared(t)
	const get = "GET / HTTP/1.1\r\nHost: x\r\n"
	const post = "POST /oauth/token HTTP/1.1\r\nHost: x\r\n"
	tests := map[string]struct {
		request  string
		statuses []int
	}{
		"200,000 headers": {
			request:  get + strings.Repeat("X-A: b\r\n", 200_000) + "\r\n",
			statuses: []int{431},
		},
		"a header of 2 MiB": {
			request:  get + "X-A: " + strings.Repeat("a", 2<<20) + "\r\n\r\n",
			statuses: []int{431},
		},
		"a path of 2 MiB": {
			request:  "GET /" + strings.Repeat("a", 2<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n",
			statuses: []int{414, 431},
		},
		"no host": {
			request:  "GET / HTTP/1.1\r\n\r\n",
			statuses: []int{400},
		},
		"two hosts": {
			request:  "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
			statuses: []int{400},
		},
		"a space in a name": {
			request:  get + "X A: b\r\n\r\n",
			statuses: []int{400},
		},
		"two lengths": {
			request:  post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
			statuses: []int{400},
		},
		"a negative length": {
			request:  post + "Content-Length: -1\r\n\r\n",
			statuses: []int{400},
		},
		"an unknown coding": {
			request:  post + "Transfer-Encoding: x\r\n\r\n",
			statuses: []int{400, 501},
		},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, _ := sendRaw(t, s, strings.NewReader(tt.request))
			if !slices.Contains(tt.statuses, status) {
				t.Errorf("status %d, want one of %v", status, tt.statuses)
			}
		})
	}
}

// TestI02Smuggling sends a request with two conflicting lengths, followed by another request. The
// server refuses the first request and closes the connection, so it never reads the second one.
func TestI02Smuggling(t *testing.T) {
	s := harness.Shared(t)
	request := "POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"0\r\n\r\n" +
		"GET /oauth/jwks HTTP/1.1\r\nHost: x\r\n\r\n"
	status, closed := sendRaw(t, s, strings.NewReader(request))
	if status < 400 || status >= 500 {
		t.Errorf("status %d, want 400 to 499", status)
	}
	if !closed {
		t.Errorf("after the status %d, the server did not close the connection", status)
	}
}

// TestI02Continue shows that a request without credentials is refused before its announced body
// arrives.
func TestI02Continue(t *testing.T) {
	p := project(t)
	began := time.Now()
	head := "POST /api/fabric/subscribers/tokens HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" +
		"Content-Length: 10485760\r\nContent-Type: application/json\r\n\r\n"
	if status, _ := sendRaw(t, p.Server, strings.NewReader(head)); status != 401 {
		t.Errorf("a request without the announced body returned the status %d, want 401", status)
	}
	if took := time.Since(began); took > time.Minute/2 {
		t.Errorf("the refusal took %v, want at most half a minute", took)
	}
}

// TestI04Compressed shows that compressed bodies are refused. A small one could expand to a very
// large one.
func TestI04Compressed(t *testing.T) {
	p := project(t)
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	for _, coding := range []string{"gzip", "deflate", "br", "zstd", "identity, gzip"} {
		for path, kind := range map[string]string{
			"/api/fabric/subscribers/tokens": "application/json",
			"/oauth/token":                   "application/x-www-form-urlencoded",
			p.LaML("/Recordings"):            "audio/wav",
		} {
			a := p.Post(t, path, p.Basic(), harness.Body(kind, small.Bytes()),
				harness.Header("Content-Encoding", coding))
			if a.Status != 415 {
				t.Errorf("POST %s with %s = %d %s, want 415", path, coding, a.Status, a.Body)
			}
		}
	}
}

// TestI10PublicPort shows that the public port serves nothing from the ops listener or the data
// directory, and that the ops listener serves no public endpoint.
func TestI10PublicPort(t *testing.T) {
	s := harness.Shared(t)
	for _, path := range []string{
		"/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/metrics", "/healthz", "/healthz?verbose", "/readyz",
		"/.git/config", "/.env", "/run.json", "/master.key", "/ca.pem", "/selvage.db",
	} {
		if a := s.Get(t, path); a.Status != 404 && a.Status != 405 {
			t.Errorf("GET %s on the public port = %d, want 404 or 405", path, a.Status)
		}
	}

	for _, method := range []string{"TRACE", "TRACK", "DEBUG", "PROPFIND"} {
		for _, path := range []string{"/", "/oauth/token", "/api/fabric/addresses"} {
			a := s.Do(t, method, path, harness.Header("X-Secret", "canary"))
			if a.Status < 400 || a.Status >= 500 {
				t.Errorf("%s %s = %d, want 400 to 499", method, path, a.Status)
			}
			if strings.Contains(string(a.Body), "canary") {
				t.Errorf("the response to %s %s contains the header X-Secret of the request", method, path)
			}
		}
	}

	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		s.Get(t, s.Ops+path).Want(t, 200)
	}
	s.Get(t, s.Ops+"/oauth/jwks").Want(t, 404)
}

// TestErrorPageLog shows that the request ID on an error page identifies the cause in a log at
// level info. The log does not contain the parameters of the request.
func TestErrorPageLog(t *testing.T) {
	s := harness.Start(t)
	page := s.Browser().Open(t,
		"/login/oauth/authorize?client_id=nobody&redirect_uri=https%3A%2F%2Fevil.example%2F&state=hush")
	page.WantErrorPage(t, 400)
	id := regexp.MustCompile(`Request <code>([A-Z2-7]{20})</code>`).FindSubmatch(page.Body)
	if id == nil {
		t.Fatalf("the page has no request id: %s", page.Body)
	}

	line := regexp.MustCompile(`error page.*` + string(id[1]) + `.*The app cannot sign you in here`)
	harness.Eventually(t, time.Minute, "the page to be logged", func() error {
		if log := s.Log(); !line.MatchString(log) {
			return errors.New(log)
		}
		return nil
	})
	for _, parameter := range []string{"hush", "evil.example"} {
		if strings.Contains(s.Log(), parameter) {
			t.Errorf("the log contains %s, which is from the parameters of the request", parameter)
		}
	}
}

// TestErrorPageCause shows that an error page tells developers the cause, but only for requests
// from this machine. The log always contains the cause.
func TestErrorPageCause(t *testing.T) {
	s := harness.Start(t)
	p := s.NewProject(t)
	spa := p.NewClient(t, "spa")

	const foreign = "redirect_uri=https%3A%2F%2Fevil.example%2F"
	wrongURI := "/login/oauth/authorize?response_type=code&scope=openid&" + foreign + "&client_id=" + spa.ID
	for _, tt := range []struct{ path, cause string }{
		{
			path:  "/login/oauth/authorize?client_id=nobody&" + foreign,
			cause: "no client has this client_id",
		},
		{
			path:  "/login/oauth/authorize?client_id=" + spa.ID,
			cause: "redirect_uri is missing",
		},
		{
			path:  wrongURI,
			cause: "redirect_uri is not one of those registered for client " + spa.ID + ": " + spa.Redirect,
		},
		{
			path:  "/oauth/logout?client_id=nobody",
			cause: "no client has this client_id",
		},
		{
			path:  "/oauth/logout?post_logout_" + foreign + "&client_id=" + spa.ID,
			cause: "post_logout_redirect_uri is not one of those registered for client " + spa.ID,
		},
		{
			path:  "/oauth/logout?id_token_hint=forged",
			cause: "id_token_hint is not an ID token of this server",
		},
	} {
		page := s.Browser().Open(t, tt.path)
		page.WantErrorPage(t, 400)
		if !page.Has("error-cause") {
			t.Errorf("the page of %s has no element error-cause", tt.path)
		}
		if !strings.Contains(string(page.Body), tt.cause) {
			t.Errorf("the page of %s is %s, want it to contain %q", tt.path, page.Body, tt.cause)
		}
		harness.Eventually(t, time.Minute, "the cause to be logged", func() error {
			if log := s.Log(); !strings.Contains(log, tt.cause) {
				return errors.New(log)
			}
			return nil
		})
	}

	page := s.Get(t, wrongURI, harness.Header("X-Forwarded-For", "192.0.2.1")).Want(t, 400)
	for _, hidden := range []string{spa.Redirect, "error-cause"} {
		if strings.Contains(string(page.Body), hidden) {
			t.Errorf("the page for a remote client contains %q: %s", hidden, page.Body)
		}
	}
	if strings.Contains(s.Log(), "evil.example") {
		t.Error("the log contains the requested redirect_uri")
	}
}

// TestI10OpsOfOtherSites shows that the ops listener refuses cross-site requests, which a page of
// another site could send from an operator's browser.
func TestI10OpsOfOtherSites(t *testing.T) {
	s := harness.Shared(t)
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/heap", "/metrics"} {
		for name, value := range map[string]string{
			"Sec-Fetch-Site": "cross-site",
			"Origin":         "https://evil.example",
			"Referer":        "http://evil.example/",
		} {
			a, err := s.TryURL("GET", s.Ops+path, harness.Header(name, value))
			if err != nil || a.Status != 403 {
				t.Errorf("GET %s with %s: %s = %d, %v, want 403", path, name, value, a.Status, err)
			}
		}
		if a, err := s.TryURL("GET", s.Ops+path); err != nil || a.Status != 200 {
			t.Errorf("GET %s without headers of a browser = %d, %v, want 200", path, a.Status, err)
		}
	}
}

// TestI15CipherSuites offers each TLS 1.2 suite alone to the listeners of HTTPS and TURN. They
// accept only suites with forward secrecy and AES-GCM.
func TestI15CipherSuites(t *testing.T) {
	s := harness.Start(t, "--listen-turn", "127.0.0.1:0")
	found, _ := s.TryCommand("doctor") // some checks may fail on a busy machine
	relay := regexp.MustCompile(`turns:(localhost:\d+)`).FindStringSubmatch(found)
	if relay == nil {
		t.Fatalf("doctor names no TURN server: %s", found)
	}
	wantOnlyGCM(t, strings.TrimPrefix(s.HTTPS, "https://"))
	wantOnlyGCM(t, relay[1])
}

// wantOnlyGCM fails the test unless the listener at an address accepts at least one TLS 1.2 suite,
// and only suites with ECDHE and GCM.
func wantOnlyGCM(t *testing.T, address string) {
	t.Helper()
	accepted := 0
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			continue
		}
		c, err := tls.Dial("tcp", address, &tls.Config{
			InsecureSkipVerify: true,
			ServerName:         "localhost",
			MaxVersion:         tls.VersionTLS12,
			CipherSuites:       []uint16{suite.ID},
		})
		if err != nil {
			continue
		}

		accepted++
		if !strings.Contains(suite.Name, "_ECDHE_") || !strings.Contains(suite.Name, "_GCM_") {
			t.Errorf("%s accepts %s, want only ECDHE with GCM", address, suite.Name)
		}
		c.Close()
	}

	if accepted == 0 {
		t.Errorf("%s accepts no TLS 1.2 suite", address)
	}
}
