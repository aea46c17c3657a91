package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/web"
)

// serveTest serves h as the server's own listeners do, but with other timeouts: bodies is the timeout
// for request bodies, and answers is the timeout for responses.
func serveTest(t *testing.T, h http.Handler, bodies, answers time.Duration) net.Addr {
	t.Helper()
	l, err := listen(t.Context(), wanted{address: "127.0.0.1:0", flag: "--listen"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	patient := l.(patientListener)
	patient.patience = answers
	log := slog.New(slog.DiscardHandler)
	srv := newServer(web.Outer(patientBodies(h, bodies), log, nil), log)
	go srv.Serve(patient)
	t.Cleanup(func() { _ = srv.Close() })
	return l.Addr()
}

func dial(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSlowBody shows that reading a stalled body fails, and that the response still arrives.
func TestSlowBody(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "gave up", http.StatusRequestTimeout)
		}
	})
	addr := serveTest(t, handler, 100*time.Millisecond, patience)
	conn := dial(t, addr)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	wantFinal(t, conn, "HTTP/1.1 408 ")
}

// wantFinal reads until the connection is closed, and checks the beginning of the response.
func wantFinal(t *testing.T, conn net.Conn, beginning string) {
	t.Helper()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("reading until the connection is closed: %v", err)
	}
	if !bytes.HasPrefix(got, []byte(beginning)) {
		t.Errorf("response = %q, want a response that begins with %q", got, beginning)
	}
}

// TestSlowReader shows that a client that does not receive the response is disconnected, even if
// net/http has removed the deadline after an earlier request.
func TestSlowReader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(file, make([]byte, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}

	done := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, file)
		if r.Method == http.MethodGet {
			close(done)
		}
	})
	addr := serveTest(t, handler, patience, 100*time.Millisecond)

	conn := dial(t, addr)
	const requests = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"
	if _, err := io.WriteString(conn, requests); err != nil {
		t.Fatal(err)
	}

	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("the handler still waits for a client that does not read")
	}
}

// TestWholeFile checks that a file sent in chunks arrives completely.
func TestWholeFile(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 3*writeChunk/16+1)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}

	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, file)
	})
	addr := serveTest(t, handler, patience, patience)
	resp, err := http.Get("http://" + addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the response differs from the file; it has %d bytes, and the file has %d", len(got), len(want))
	}
}

// TestLongAnswer shows that the deadline for the request body does not end the response.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	const bodyTimeout = 2 * time.Second // enough for a body of four bytes
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(bodyTimeout + bodyTimeout/4):
			_, _ = io.WriteString(w, "done")
		}
	})
	addr := serveTest(t, handler, bodyTimeout, patience)

	resp, err := http.Post("http://"+addr.String(), "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "done" {
		t.Errorf("response = %q, want done", got)
	}
}

// TestBigHeader shows that a request with a header that is too large gets status 431.
func TestBigHeader(t *testing.T) {
	addr := serveTest(t, http.NotFoundHandler(), patience, patience)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Big", strings.Repeat("x", 2*maxHeader))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status = %d, want 431", resp.StatusCode)
	}
}

// TestUnreadBody shows that the response to an announced body is not delayed if the handler does
// not read the body.
func TestUnreadBody(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusUnauthorized)
	})
	addr := serveTest(t, handler, 100*time.Millisecond, patience)
	heads := map[string]string{
		"after 100 Continue":  "Content-Length: 10000000\r\nExpect: 100-continue",
		"of announced length": "Content-Length: 100",
		"chunked":             "Transfer-Encoding: chunked",
	}
	for name, head := range heads {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, addr)
			request := "POST / HTTP/1.1\r\nHost: x\r\n" + head + "\r\n\r\n"
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			wantFinal(t, conn, "HTTP/1.1 401 ")
		})
	}
}

// TestWriteRenewed shows that a write has its full time, whatever deadline was set before. After a
// connection has been hijacked, for example, an old deadline remains.
func TestWriteRenewed(t *testing.T) {
	l, err := listen(t.Context(), wanted{address: "127.0.0.1:0", flag: "--listen"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := dial(t, l.Addr())
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	past := time.Now().Add(-time.Hour)
	setters := []struct {
		name string
		set  func(time.Time) error
	}{
		{name: "SetDeadline", set: conn.SetDeadline},
		{name: "SetWriteDeadline", set: conn.SetWriteDeadline},
	}
	for _, tt := range setters {
		for range 2 { // the second write finds the deadline that the first one set
			if _, err := io.WriteString(conn, "x"); err != nil {
				t.Errorf("write before %s: %v", tt.name, err)
			}
		}
		if err := tt.set(past); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "x"); err != nil {
			t.Errorf("write after %s: %v", tt.name, err)
		}
	}

	got := make([]byte, 6)
	if _, err := io.ReadFull(client, got); err != nil {
		t.Error(err)
	}
}
