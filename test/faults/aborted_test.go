package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// maxAborted is how many aborted requests the server may still be handling when the next ones are
// sent. If there were more, some would wait for the database longer than the server allows.
const maxAborted = 100

// aborts returns the number of requests of each kind to abort.
func aborts() int {
	if os.Getenv("LONG") == "1" {
		return 20000
	}
	return 200
}

// TestAbortedRequests aborts uploads, downloads, sign-ins and token requests by closing their
// connections. Afterwards, the server must have about as many goroutines, files and connections as
// before, and must not have logged an aborted request as a server error.
func TestAbortedRequests(t *testing.T) {
	s := harness.Start(t)
	p := s.NewProject(t)
	c := p.NewClient(t, "web", "--first-party", "--id-token-alg", "ES256")
	_, b := c.SignIn(t, p.NewSubscriber(t), "openid")
	long := p.Upload(t, harness.Tone(4<<20, 20)) // more than sockets can buffer

	upload := request(t, s, "POST", p.LaML("/Recordings"), p.Basic(),
		harness.Body("audio/wav", harness.Tone(8000, 20)))
	download := request(t, s, "GET", p.LaML("/Recordings/"+long+".wav"), p.Basic())
	kinds := map[string]func() error{
		"upload":   func() error { return abort(s, upload[:len(upload)/2], 0) },
		"download": func() error { return abort(s, download, 1000) },
		"sign-in": func() error {
			path := "/login/oauth/authorize?" + c.NewFlow("openid").Query.Encode()
			return abort(s, request(t, s, "GET", path, b.Cookies()), 0)
		},
		"token": func() error {
			form := c.NewFlow("openid").Form("unknown")
			return abort(s, request(t, s, "POST", "/oauth/token", c.Authenticated(form)...), 0)
		},
	}
	idle, _ := descriptors(t, s)
	abortAll := func(n int) {
		for name, do := range kinds {
			for i := range n {
				if err := do(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if i%maxAborted == maxAborted-1 {
					waitForSockets(t, s, idle+maxAborted)
				}
			}
		}
	}

	abortAll(50) // fills the pools
	before := measureKept(t, s)
	abortAll(aborts())

	for name, was := range before {
		most := was + 20 // a tenth of the requests of one kind, or less with LONG=1
		harness.Eventually(t, time.Minute, name+" to be as before", func() error {
			if now := measureKept(t, s)[name]; now > most {
				return fmt.Errorf("the value is %v, and was %v before", now, was)
			}
			return nil
		})
	}
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"cause":""`) {
			t.Fatalf("an aborted request is logged as a server error: %s", line)
		}
	}
}

// waitForSockets waits until the server has at most the given number of sockets.
func waitForSockets(t *testing.T, s *harness.Server, most int) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the aborted requests to end", func() error {
		if n, _ := descriptors(t, s); n > most {
			return fmt.Errorf("the server has %d sockets, want at most %d", n, most)
		}
		return nil
	})
}

// measureKept returns values that must not grow with the number of requests. The files of the
// database are not among them, because each connection in its pool opens several.
func measureKept(t *testing.T, s *harness.Server) map[string]float64 {
	t.Helper()
	sockets, files := descriptors(t, s)
	values := map[string]float64{"sockets": float64(sockets), "files": float64(files)}
	for _, name := range []string{"go_goroutines", `selvage_database_connections_open{holds="rows"}`} {
		values[name] = metric(t, s, name)
	}
	return values
}

// metric returns the value of a metric.
func metric(t *testing.T, s *harness.Server, name string) float64 {
	t.Helper()
	for line := range strings.Lines(string(s.Get(t, s.Ops+"/metrics").Want(t, 200).Body)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return value
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// request returns a request in the form in which it is sent.
func request(t *testing.T, s *harness.Server, method, path string, opts ...harness.Option) []byte {
	t.Helper()
	r, err := http.NewRequest(method, s.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range opts {
		o(r)
	}
	var raw bytes.Buffer
	if err := r.Write(&raw); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

// abort sends the bytes of a request on a new connection, reads some bytes of the response, and
// closes the connection.
func abort(s *harness.Server, raw []byte, read int64) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(raw); err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, bufio.NewReader(conn), read)
	return err
}
