package faults

import (
	"bufio"
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

// TestDescriptorsExhausted opens more connections than the server may have open files, and leaves
// them idle. A client with an earlier connection is still served. The server logs why it accepts no
// more connections, closes idle ones, and then accepts new ones.
func TestDescriptorsExhausted(t *testing.T) {
	harness.Rows(t)
	harness.Need(t, "prlimit")
	files, idle := 200, 400
	if os.Getenv("LONG") == "1" {
		files, idle = 4096, 10000
	}
	s := harness.StartConfig(t, harness.Config{Prefix: []string{"prlimit", "--nofile=" + strconv.Itoa(files)}})
	p := s.NewProject(t)
	c := p.NewClient(t, "web", "--first-party")
	sub := p.NewSubscriber(t)
	_, b := c.SignIn(t, sub, "openid offline_access")
	harness.CloseIdle()

	early := dial(t, s)
	if status := ask(t, early, "/oauth/jwks"); status != 200 {
		t.Fatalf("before the other connections are open, the status is %d, want 200", status)
	}

	for range idle {
		dial(t, s)
	}
	harness.Eventually(t, time.Minute, "the server to open as many files as it may", func() error {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
		if err == nil && len(open) < files {
			err = fmt.Errorf("the server has %d of %d files open", len(open), files)
		}
		return err
	})
	for range 20 {
		if status := ask(t, early, "/oauth/jwks"); status != 200 {
			t.Errorf("on a connection that is already open, the status is %d, want 200", status)
		}
	}

	harness.Eventually(t, time.Minute, "a client to sign in on a new connection", func() error {
		f := c.NewFlow("openid offline_access")
		code, err := f.QuickCode(b.Cookies())
		if err == nil {
			_, err = f.QuickRedeem(code)
		}
		return err
	})
	if !strings.Contains(s.Log(), "too many open files") {
		t.Error("the log does not say why no connection was accepted")
	}
	if report := s.CLI(t, "", "audit", "verify"); report["whole"] != true {
		t.Errorf("audit verify: %v, want an intact trail", report)
	}
}

// A connection stays open until the end of the test.
type connection struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, s *harness.Server) connection {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return connection{conn, bufio.NewReader(conn)}
}

// ask sends a GET on a connection, and returns the status of the answer.
func ask(t *testing.T, c connection, path string) int {
	t.Helper()
	r, err := http.NewRequest("GET", "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := r.Write(c); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.answers, r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}
