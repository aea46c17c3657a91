package egress_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/problem"
)

func TestCheck(t *testing.T) {
	p := egress.Policy{Allow: []string{"pbx.internal", "10.1.2.3", "[fd00::1]", "LocalHost"}}

	tests := []struct {
		url  string
		code string // of the problem; "" if the URL is accepted
	}{
		{"https://example.com/hook?a=b", ""},
		{"http://example.com:8080/", ""},
		{"https://example.com:443", ""},
		{"https://93.184.216.34/", ""},
		{"https://[2606:2800:220:1::1]/", ""},
		{"https://xn--bcher-kva.example/", ""},
		{"http://pbx.internal:25/", ""},
		{"http://PBX.Internal./", ""},
		{"http://10.1.2.3:99/", ""},
		{"http://[fd00::1]/", ""},
		{"http://localhost:3000/", ""},

		{"", "not_an_http_url"},
		{"example.com", "not_an_http_url"},
		{"/path", "not_an_http_url"},
		{"https:example.com", "not_an_http_url"},
		{"https:///x", "not_an_http_url"},
		{"https://:80/", "not_an_http_url"},
		{"gopher://example.com/", "not_an_http_url"},
		{"file:///etc/passwd", "not_an_http_url"},
		{"ftp://example.com/", "not_an_http_url"},
		{"javascript:alert(1)", "not_an_http_url"},
		{"https://example.com\\@10.0.0.1/", "not_an_http_url"},
		{"https://exa mple.com/", "not_an_http_url"},
		{"https://example.com/\r\nX: y", "not_an_http_url"},
		{"https://b\u00fccher.example/", "not_an_http_url"},
		{"https://1\u30022.3.4/", "not_an_http_url"},

		{"https://a:b@example.com/", "url_is_unsafe"},
		{"https://example.com@10.0.0.1/", "url_is_unsafe"},
		{"https://example.com/#x", "url_is_unsafe"},
		{"https://example.com:0/", "url_is_unsafe"},
		{"https://example.com:/", "url_is_unsafe"},
		{"https://example.com:22/", "url_is_unsafe"},
		{"https://example.com:70000/", "url_is_unsafe"},
		{"http://127.0.0.1/", "url_is_unsafe"},
		{"http://127.0.0.1./", "url_is_unsafe"},
		{"http://127.1/", "url_is_unsafe"},
		{"http://2130706433/", "url_is_unsafe"},
		{"http://0x7f000001/", "url_is_unsafe"},
		{"http://0x7f.0.0.0x1/", "url_is_unsafe"},
		{"http://017700000001/", "url_is_unsafe"},
		{"http://0/", "url_is_unsafe"},
		{"http://a.localhost/", "url_is_unsafe"},
		{"http://localhost./", ""}, // this name is allowed above
		{"http://169.254.169.254/latest/meta-data/", "url_is_unsafe"},
		{"http://[::]/", "url_is_unsafe"},
		{"http://[::1]/", "url_is_unsafe"},
		{"http://[::ffff:127.0.0.1]/", "url_is_unsafe"},
		{"http://[::ffff:7f00:1]/", "url_is_unsafe"},
		{"http://[64:ff9b::7f00:1]/", "url_is_unsafe"},
		{"http://[2002:7f00:1::]/", "url_is_unsafe"},
		{"http://[fe80::1%25eth0]/", "url_is_unsafe"},
		{"http://[fd00::2]/", "url_is_unsafe"},
		{"http://100.100.100.200/", "url_is_unsafe"},
		{"http://10.1.2.4/", "url_is_unsafe"},
		{"http://239.1.1.1/", "url_is_unsafe"},
		{"http://255.255.255.255/", "url_is_unsafe"},
	}

	for _, tt := range tests {
		err := p.Check("url", tt.url)
		if tt.code == "" {
			if err != nil {
				t.Errorf("Check(%q) = %v, want nil", tt.url, err)
			}
			continue
		}

		got := problem.First(err)
		if got == nil {
			t.Errorf("Check(%q) = %v, want a problem", tt.url, err)
			continue
		}
		if got.Kind != problem.Invalid || got.Param != "url" {
			t.Errorf("Check(%q) = %+v, want the kind Invalid and the parameter url", tt.url, got)
		}
		if got.Code != tt.code {
			t.Errorf("Check(%q) has the code %q, want %q", tt.url, got.Code, tt.code)
		}
	}
}

// receiver starts a server on the loopback interface and returns its port. reached reports whether
// the server has received a request.
func receiver(t *testing.T) (port string, reached func() bool) {
	t.Helper()
	hits := make(chan struct{}, 16)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits <- struct{}{} }))
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port, func() bool { return len(hits) > 0 }
}

// TestDial shows that a URL cannot reach loopback unless the operator allows it, whatever name an
// attacker uses, and even if the URL was not checked before.
func TestDial(t *testing.T) {
	port, reached := receiver(t)
	names := resolver(t, func(string) net.IP { return net.IPv4(127, 0, 0, 1) })
	client := egress.Policy{Resolver: names}.Client()

	for _, host := range []string{
		"127.0.0.1", "localhost", "rebound.example", "[::1]", "[::]", "0.0.0.0",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0x7f000001", "127.1",
	} {
		resp, err := client.Get("http://" + host + ":" + port + "/")
		if err == nil {
			resp.Body.Close()
			t.Errorf("the request to %s succeeds, want an error", host)
		}
	}
	if reached() {
		t.Error("a request reached loopback")
	}

	allowing := egress.Policy{Resolver: names, Allow: []string{"pbx.example"}}
	resp, err := allowing.Client().Get("http://pbx.example:" + port + "/")
	if err != nil {
		t.Fatalf("a request to an allowed name: %v, want success", err)
	}
	resp.Body.Close()
	if !reached() {
		t.Error("the request to an allowed name did not arrive")
	}
}

// TestRebind shows that a name is refused if it resolves to a public address when it is checked,
// and to loopback when it is dialed.
func TestRebind(t *testing.T) {
	port, reached := receiver(t)
	public, loopback := net.IPv4(93, 184, 216, 34), net.IPv4(127, 0, 0, 1)
	var resolutions atomic.Int32
	p := egress.Policy{Resolver: resolver(t, func(string) net.IP {
		if resolutions.Add(1) == 1 {
			return public
		}
		return loopback
	})}

	ips, err := p.Resolver.LookupIP(context.Background(), "ip4", "rebound.example")
	if err != nil || !ips[0].Equal(public) {
		t.Fatalf("the first resolution returns %v, %v, want %v", ips, err, public)
	}

	_, err = p.Client().Get("http://rebound.example:" + port + "/")
	got := problem.First(err)
	if got == nil || got.Code != "url_is_unsafe" {
		t.Fatalf("Get after the name was rebound = %v, want the code url_is_unsafe", err)
	}
	if strings.Contains(got.Message, "127") {
		t.Errorf("the message is %q, want one without the address", got.Message)
	}
	if n := resolutions.Load(); n < 2 {
		t.Errorf("the name was resolved %d times, want at least 2", n)
	}
	if reached() {
		t.Error("a request reached loopback")
	}
}

// TestRefused shows that the log and the result of Refused contain the refused address, and
// that the result of Reason does not.
func TestRefused(t *testing.T) {
	var log bytes.Buffer
	p := egress.Policy{
		Resolver: resolver(t, func(string) net.IP { return net.IPv4(10, 9, 8, 7) }),
		Log:      egress.NewLog(slog.New(slog.NewTextHandler(&log, nil))),
	}
	_, err := p.Client().Get("http://inside.example:8080/?token=secret")
	if got := egress.Refused(err); got != "10.9.8.7:8080" {
		t.Errorf("Refused = %q, want 10.9.8.7:8080", got)
	}
	reason := egress.Reason(err)
	if strings.Contains(reason, "10.9") {
		t.Errorf("Reason = %q, want no address in it", reason)
	}
	if !strings.Contains(reason, "egress.allow") {
		t.Errorf("Reason = %q, want the setting egress.allow in it", reason)
	}
	for _, want := range []string{"egress.allow", "host=inside.example", "address=10.9.8.7:8080"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has the query of the URL: %s", log.String())
	}

	if got := egress.Refused(errors.New("lost")); got != "" {
		t.Errorf("Refused of a different error = %q, want none", got)
	}
}

// TestRedirect shows that a redirect to a private address is not followed, and that a proxy from
// the environment is not used.
func TestRedirect(t *testing.T) {
	port, reached := receiver(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+port)
	front := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:"+port+"/", http.StatusTemporaryRedirect))
	defer front.Close()
	_, frontPort, _ := net.SplitHostPort(front.Listener.Addr().String())

	p := egress.Policy{
		Allow:    []string{"front.example"},
		Resolver: resolver(t, func(string) net.IP { return net.IPv4(127, 0, 0, 1) }),
	}
	resp, err := p.Client().Get("http://front.example:" + frontPort + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("the status is %d, want 307", resp.StatusCode)
	}
	if reached() {
		t.Error("a request reached loopback")
	}
}

func TestDialMany(t *testing.T) {
	for _, ip := range []string{
		"10.0.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.169.254", "0.1.2.3",
		"198.18.0.1", "192.0.0.192", "224.0.0.1", "fc00::1", "fe80::1", "ff02::1", "::2", "2001::1",
		"2001:db8::1", "64:ff9b:1::1", "2002:a00:1::1", "64:ff9b::a00:1", "100::1",
	} {
		p := egress.Policy{Resolver: resolver(t, func(string) net.IP { return net.ParseIP(ip) })}
		_, err := p.Client().Get("http://x.example:8080/")
		if !errors.Is(err, problem.Forbidden) {
			t.Errorf("%s: %v, want problem.Forbidden", ip, err)
		}
	}

	p := egress.Policy{Resolver: resolver(t, func(string) net.IP { return net.IPv4(93, 184, 216, 34) })}
	if _, err := p.Client().Get("http://x.example:22/"); !errors.Is(err, problem.Forbidden) {
		t.Errorf("port 22 of a public address: %v, want problem.Forbidden", err)
	}
}
