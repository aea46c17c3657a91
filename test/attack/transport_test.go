package attack

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/selvage/selvage/test/harness"
)

// TestI02SmuggledBytes sends requests whose end two servers could see in different places. The
// server refuses each request or closes the connection, so that bytes after the request are never
// treated as another request.
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
			if len(statuses) != 1 || statuses[0] < 400 || statuses[0] >= 502 || !closed {
				t.Errorf("the answers are %v, connection closed: %v; want one refusal, then the end", statuses, closed)
			}
		})
	}

	// A server may accept lines that end in a bare line feed (RFC 9112, section 2.2). It must then
	// either answer both requests or refuse the first one.
	statuses, _ := answers(t, s, strings.ReplaceAll(post+"Content-Length: 0\r\n\r\n"+hidden, "\r\n", "\n"))
	if len(statuses) != 2 && (len(statuses) != 1 || statuses[0] != 400) {
		t.Errorf("requests with bare line feeds are answered with %v, want two answers or a refusal", statuses)
	}
}

// TestRefusedUpgrades hides a request after a refused WebSocket upgrade. A proxy that treats the
// connection as a WebSocket would not see the hidden request. The server therefore closes the
// connection when it refuses the upgrade.
func TestRefusedUpgrades(t *testing.T) {
	s := harness.Shared(t)
	const hidden = "GET /oauth/jwks HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, head := range map[string]string{
		"an old version": "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		"a short key":    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n",
		"no key":         "Sec-WebSocket-Version: 13\r\n",
	} {
		statuses, closed := answers(t, s,
			"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+head+"\r\n"+hidden)
		if len(statuses) != 1 || statuses[0] != 400 || !closed {
			t.Errorf("%s: the answers are %v, connection closed: %v; want one refusal, then the end",
				name, statuses, closed)
		}
	}
}

// answers sends bytes over a new connection. It returns the statuses of at most two responses, and
// whether the server closes the connection after fewer.
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
		var late net.Error
		if err != nil {
			return statuses, !errors.As(err, &late) || !late.Timeout()
		}

		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return append(statuses, resp.StatusCode), true
		}
		statuses = append(statuses, resp.StatusCode)
	}
	return statuses, false
}

// TestI01SlowClients keeps connections busy. It sends a byte of a header or of a body every second,
// or does not read a response. The server closes each connection after a limited time, and serves
// other clients at the same time.
func TestI01SlowClients(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.Start(t)
	p := s.NewProject(t)
	sid := p.Upload(t, harness.Tone(4_000_000, 8)) // 8 MB, more than the kernel's buffers can hold

	var clients sync.WaitGroup
	for name, tt := range map[string]struct {
		first string
		drip  string // bytes sent each second
		most  time.Duration
	}{
		"a slow header": {"GET /oauth/jwks HTTP/1.1\r\nHost: x\r\nX-A: ", "a", 15 * time.Second},
		"no header":     {"", "", 15 * time.Second},
		"a slow body": {"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n" +
			"Content-Length: 10000\r\n\r\n", "a", time.Minute},
		"slow chunks": {"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", time.Minute},
		"an answer that is not read": {"GET " + p.LaML("/Recordings/"+sid+".wav") + " HTTP/1.1\r\nHost: x\r\n\r\n", "",
			100 * time.Second},
	} {
		clients.Go(func() {
			if took := drip(s, tt.first, tt.drip, tt.most); took > tt.most {
				t.Errorf("%s keeps a connection for more than %v", name, tt.most)
			}
		})
	}

	over := make(chan struct{})
	go func() { clients.Wait(); close(over) }()
	for going := true; going; {
		p.Get(t, "/oauth/jwks").Want(t, 200)
		select {
		case <-over:
			going = false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// drip sends bytes each second until the server has closed the connection, and returns how long
// that takes. If it takes longer than most, drip stops.
func drip(s *harness.Server, first, each string, most time.Duration) time.Duration {
	began := time.Now()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
	if err != nil {
		return 0
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, first) // the writes below detect errors

	reads := strings.HasPrefix(first, "GET") && each == ""
	buf := make([]byte, 1)
	for time.Since(began) < most+time.Second {
		if reads { // the response is not read, so only a write can detect a closed connection
			time.Sleep(time.Second)
			if _, err := io.WriteString(conn, "\r\n"); err != nil {
				break
			}
			continue
		}

		_, _ = io.WriteString(conn, each)
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, err := conn.Read(buf)
		var late net.Error
		if err != nil && (!errors.As(err, &late) || !late.Timeout()) {
			break
		}
	}
	return time.Since(began)
}

// TestI09Floods floods an HTTP/2 connection with frames that cost the client little. The server
// closes the connection or processes all frames. Its memory does not grow, and it still answers
// other clients.
func TestI09Floods(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	sat := p.NewSAT(t, "ada")
	header := encodeHeader(s)

	for _, flood := range []struct {
		name string
		send func(f *http2.Framer, i uint32) error
	}{
		{"rapid resets", func(f *http2.Framer, i uint32) error {
			return errors.Join(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: header,
				EndStream: true, EndHeaders: true}), f.WriteRSTStream(2*i+1, http2.ErrCodeCancel))
		}},
		{"streams that never end", func(f *http2.Framer, i uint32) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: header, EndHeaders: true})
		}},
		{"continuations", func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header})
			}
			return f.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 8<<10)) // :method, many times
		}},
		{"settings", func(f *http2.Framer, _ uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
		}},
		{"pings", func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{}) }},
		{"empty data", func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header, EndHeaders: true})
			}
			return f.WriteData(1, false, nil)
		}},
		{"priorities", func(f *http2.Framer, i uint32) error {
			return f.WritePriority(2*i+1, http2.PriorityParam{StreamDep: 0, Weight: 1})
		}},
		{"window updates", func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) }},
	} {
		t.Run(flood.name, func(t *testing.T) {
			before := processOf(t, s)
			sent, closed := floodConnection(t, s, flood.send)
			cost := processOf(t, s).since(before)

			p.Get(t, "/api/fabric/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200)
			each := cost.cpu / time.Duration(max(sent, 1))
			t.Logf("%d frames, connection closed: %v, %v of processor time, %v a frame", sent, closed, cost.cpu, each)
			if each > time.Millisecond {
				t.Errorf("a frame costs %v of processor time, want 1 ms at most", each)
			}
			if grown := peakOf(t, s.PID()); grown > 256<<10 {
				t.Errorf("the server takes %d KiB at its peak, want 256 MiB at most", grown)
			}
		})
	}
}

// encodeHeader returns the header of a GET request in HPACK.
func encodeHeader(s *harness.Server) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: strings.TrimPrefix(s.HTTPS, "https://")}, {Name: ":path", Value: "/oauth/jwks"}} {
		_ = e.WriteField(f) // writing to a buffer cannot fail
	}
	return b.Bytes()
}

// floodConnection sends frames over a new HTTP/2 connection for a few seconds, or until the server
// closes it.
func floodConnection(
	t *testing.T, s *harness.Server, send func(*http2.Framer, uint32) error,
) (sent int, closed bool) {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.HTTPS, "https://"), &tls.Config{InsecureSkipVerify: true,
		ServerName: "localhost", NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	over := make(chan struct{}) // closed when the last frame has been answered or the connection is closed
	last := [8]byte{'o', 'v', 'e', 'r'}
	go func() {
		defer close(over)
		in := http2.NewFramer(nil, conn)
		for {
			f, err := in.ReadFrame()
			ping, ok := f.(*http2.PingFrame)
			if err != nil || ok && ping.Data == last {
				return
			}
		}
	}()

	const most, duration = 20_000, 3 * time.Second
	if err := conn.SetWriteDeadline(time.Now().Add(duration)); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(conn)
	f := http2.NewFramer(out, nil)
	if _, err := io.WriteString(out, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}

	for ; sent < most; sent++ {
		if err := send(f, uint32(sent)); err != nil {
			return sent, true
		}
	}
	if errors.Join(f.WritePing(false, last), out.Flush()) != nil {
		return sent, true
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("the server does not answer after the flood")
	}
	return sent, false
}

// TestI16Spoofing sends hosts and forwarded addresses that an attacker chose. They do not appear in
// anything that other people see: redirects, links, cookies, cache keys or log lines.
func TestI16Spoofing(t *testing.T) {
	s := harness.Shared(t)
	for _, spoofed := range []harness.Option{
		harness.Header("Host", "evil.example"), harness.Header("X-Forwarded-Host", "evil.example"),
		harness.Header("Forwarded", `for=192.0.2.1;host=evil.example;proto=http`),
		harness.Header("X-Forwarded-Proto", "evil.example"), harness.Header("X-Original-URL", "https://evil.example/"),
		harness.Header("X-Rewrite-URL", "https://evil.example/"),
		harness.Header("X-Forwarded-Prefix", "//evil.example"),
	} {
		for _, path := range []string{"/", "/login", "/account", "/dashboard", "/device", "/oauth/logout",
			"/.well-known/openid-configuration", "/oauth/jwks", "/api/fabric/resources", "//evil.example/..",
			"/login/oauth/authorize?client_id=a", "/nothing"} {
			a, err := s.Try("GET", path, spoofed)
			if err != nil {
				t.Fatal(err)
			}
			page := string(a.Body) + fmt.Sprint(a.Header)
			if strings.Contains(path, "evil.example") {
				page = a.Header.Get("Location")
			}
			if strings.Contains(page, "evil.example") || a.Status >= 500 {
				t.Errorf("GET %s = %d with the attacker's host in %s", path, a.Status, page)
			}
		}
	}
}
