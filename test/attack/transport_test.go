package attack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestI02SmuggledBytes sends requests about whose end two servers could disagree. The server must
// refuse each request and close the connection, so that it never treats the bytes after the request
// as another request.
func TestI02SmuggledBytes(t *testing.T) {
	s := harness.Shared(t)
	const post, hidden = "POST /oauth/token HTTP/1.1\r\nHost: x\r\n", "GET /oauth/jwks HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, head := range map[string]string{
		"length and coding":             "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"coding and length":             "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
		"two codings":                   "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"a list of codings":             "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"a coding behind a tab":         "Transfer-Encoding:\tchunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
		"a coding after a vertical tab": "Transfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n\r\n",
		"a space before the colon":      "Content-Length : 4\r\n\r\n",
		"a folded line":                 "X-A: b\r\n Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a folded length":               "Content-Length:\r\n 4\r\nContent-Length: 0\r\n\r\n",
		"a length with a sign":          "Content-Length: +0\r\n\r\n",
		"a length in hexadecimal":       "Content-Length: 0x0\r\n\r\n",
		"a list of lengths":             "Content-Length: 0, 5\r\n\r\n",
		"a bare carriage return":        "X-A: b\rContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a NUL":                         "X-A: \x00\r\nContent-Length: 0\r\n\r\n",
		"a chunk size with a sign":      "Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
		"a chunk size of 2^64":          "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
		"a chunk without its end":       "Transfer-Encoding: chunked\r\n\r\n1\r\nab0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			statuses, closed := answers(t, s, post+head+hidden)
			if !closed {
				t.Error("the server did not close the connection")
			}
			if len(statuses) != 1 {
				t.Fatalf("the server answered with %v, want one status", statuses)
			}
			if statuses[0] < 400 || statuses[0] >= 502 {
				t.Errorf("the server answered with %d, want 400 to 501", statuses[0])
			}
		})
	}

	// A server may accept lines that end in a bare line feed (RFC 9112, section 2.2). It must then
	// either answer both requests or refuse the first one.
	bare := strings.ReplaceAll(post+"Content-Length: 0\r\n\r\n"+hidden, "\r\n", "\n")
	statuses, _ := answers(t, s, bare)
	if len(statuses) != 2 && !slices.Equal(statuses, []int{400}) {
		t.Errorf("requests with bare line feeds were answered with %v, want two statuses or only 400", statuses)
	}
}

// TestRefusedUpgrades hides a request after a refused WebSocket upgrade. A proxy that treats the
// connection as a WebSocket would not see the hidden request. The server therefore closes the
// connection when it refuses the upgrade.
func TestRefusedUpgrades(t *testing.T) {
	s := harness.Shared(t)
	const upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	const hidden = "GET /oauth/jwks HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, head := range map[string]string{
		"an old version": "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		"a short key":    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n",
		"no key":         "Sec-WebSocket-Version: 13\r\n",
	} {
		statuses, closed := answers(t, s, upgrade+head+"\r\n"+hidden)
		if !slices.Equal(statuses, []int{400}) {
			t.Errorf("an upgrade with %s was answered with %v, want only 400", name, statuses)
		}
		if !closed {
			t.Errorf("an upgrade with %s: the server did not close the connection", name)
		}
	}
}

// answers sends bytes over a new connection and reads up to two responses. It returns their
// statuses, and whether the server closed the connection before the second response.
func answers(t *testing.T, s *harness.Server, requests string) (statuses []int, closed bool) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, requests); err != nil {
		return nil, true
	}

	in := bufio.NewReader(conn)
	for len(statuses) < 2 {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses, !isTimeout(err)
		}

		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return append(statuses, resp.StatusCode), true
		}
		statuses = append(statuses, resp.StatusCode)
	}
	return statuses, false
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestI01SlowClients keeps connections open: it sends a byte of a header or body every second,
// sends nothing, or does not read the response. The server closes each connection in time, and
// meanwhile serves other clients.
func TestI01SlowClients(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.Start(t)
	p := s.NewProject(t)
	sid := p.Upload(t, harness.Tone(4_000_000, 8)) // 8 MB, more than the kernel's buffers can hold

	const post = "POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
	var clients sync.WaitGroup
	for name, client := range map[string]slowClient{
		"a slow header": {
			start:     "GET /oauth/jwks HTTP/1.1\r\nHost: x\r\nX-A: ",
			perSecond: "a",
			limit:     15 * time.Second,
		},
		"no header": {
			limit: 15 * time.Second,
		},
		"a slow body": {
			start:     post + "Content-Length: 10000\r\n\r\n",
			perSecond: "a",
			limit:     time.Minute,
		},
		"slow chunks": {
			start:     post + "Transfer-Encoding: chunked\r\n\r\n",
			perSecond: "1\r\na\r\n",
			limit:     time.Minute,
		},
		"an answer that is not read": {
			start:     "GET " + p.LaML("/Recordings/"+sid+".wav") + " HTTP/1.1\r\nHost: x\r\n\r\n",
			perSecond: "\r\n",
			unread:    true,
			limit:     100 * time.Second,
		},
	} {
		clients.Go(func() {
			if took := client.run(s); took > client.limit {
				t.Errorf("%s kept a connection open for %v, want at most %v", name, took, client.limit)
			}
		})
	}

	over := make(chan struct{})
	go func() {
		clients.Wait()
		close(over)
	}()
	for {
		p.Get(t, "/oauth/jwks").Want(t, 200)
		select {
		case <-over:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A slowClient sends a few bytes each second over a connection, until the server closes it.
type slowClient struct {
	start     string // bytes sent first
	perSecond string // bytes sent each second
	unread    bool   // the client does not read the response
	limit     time.Duration
}

// run returns how long the server kept the connection open. It gives up a second after the limit.
func (c slowClient) run(s *harness.Server) time.Duration {
	began := time.Now()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
	if err != nil {
		return 0
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, c.start) // the loop detects errors

	for open := true; open && time.Since(began) < c.limit+time.Second; {
		if c.unread { // only a write can detect a closed connection
			time.Sleep(time.Second)
			_, err := io.WriteString(conn, c.perSecond)
			open = err == nil
			continue
		}

		_, _ = io.WriteString(conn, c.perSecond)
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, err := conn.Read(make([]byte, 1))
		open = err == nil || isTimeout(err)
	}
	return time.Since(began)
}

// TestI16Spoofing sends hosts and forwarded addresses that an attacker has chosen. They must not
// appear in the responses, such as in redirects, links or cookies.
func TestI16Spoofing(t *testing.T) {
	s := harness.Shared(t)
	for name, value := range map[string]string{
		"Host":               "evil.example",
		"X-Forwarded-Host":   "evil.example",
		"Forwarded":          "for=192.0.2.1;host=evil.example;proto=http",
		"X-Forwarded-Proto":  "evil.example",
		"X-Original-URL":     "https://evil.example/",
		"X-Rewrite-URL":      "https://evil.example/",
		"X-Forwarded-Prefix": "//evil.example",
	} {
		for _, path := range []string{
			"/", "/login", "/account", "/dashboard", "/device", "/oauth/logout",
			"/.well-known/openid-configuration", "/oauth/jwks", "/api/fabric/resources", "//evil.example/..",
			"/login/oauth/authorize?client_id=a", "/nothing",
		} {
			a, err := s.Try("GET", path, harness.Header(name, value))
			if err != nil {
				t.Fatal(err)
			}
			if a.Status >= 500 {
				t.Errorf("GET %s with %s: %s returned %d, want less than 500", path, name, value, a.Status)
			}

			text := string(a.Body) + fmt.Sprint(a.Header)
			if strings.Contains(path, "evil.example") { // the response may repeat its path
				text = a.Header.Get("Location")
			}
			if strings.Contains(text, "evil.example") {
				t.Errorf("GET %s with %s: %s returned the attacker's host: %s", path, name, value, text)
			}
		}
	}
}
