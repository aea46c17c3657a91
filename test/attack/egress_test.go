package attack

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// manager returns credentials that may manage webhooks.
func manager(t *testing.T, p *harness.Project) harness.Option {
	t.Helper()
	return harness.Basic(p.ID, p.NewKey(t, "Management"))
}

// TestI12URLs shows that a webhook cannot be created for an address that only the server can reach,
// however the address is written.
func TestI12URLs(t *testing.T) {
	p := project(t)
	boss := manager(t, p)
	trap := newTrap(t)

	_, port, _ := net.SplitHostPort(strings.TrimPrefix(trap.URL, "http://"))
	tests := map[string]string{
		trap.URL:                              "url_is_unsafe",
		"http://localhost:" + port:            "url_is_unsafe",
		"http://LOCALHOST.:" + port:           "url_is_unsafe",
		"http://a.localhost:" + port:          "url_is_unsafe",
		"http://[::]:" + port:                 "url_is_unsafe",
		"http://[::1]:" + port:                "url_is_unsafe",
		"http://[::ffff:127.0.0.1]:" + port:   "url_is_unsafe",
		"http://[64:ff9b::127.0.0.1]:" + port: "url_is_unsafe",
		"http://2130706433:" + port:           "url_is_unsafe",
		"http://0x7f000001:" + port:           "url_is_unsafe",
		"http://0177.0.0.1:" + port:           "url_is_unsafe",
		"http://127.1:" + port:                "url_is_unsafe",
		"http://0:" + port:                    "url_is_unsafe",
		"http://169.254.169.254/latest/":      "url_is_unsafe",
		"http://100.100.100.200/":             "url_is_unsafe",
		"http://[fd00:ec2::254]/":             "url_is_unsafe",
		"https://example.com:6/":              "url_is_unsafe",
		"https://u:p@example.com/":            "url_is_unsafe",
		"https://example.com@127.0.0.1/":      "url_is_unsafe",
		"gopher://127.0.0.1:" + port + "/_x":  "not_an_http_url",
		"file:///etc/passwd":                  "not_an_http_url",
		"https://example.com\\@127.0.0.1/":    "not_an_http_url",
		"http://127.0.0.1:" + port + "\r\n/":  "not_an_http_url",
		"//127.0.0.1/":                        "not_an_http_url",
	}

	for url, code := range tests {
		a := p.Post(t, "/api/fabric/webhooks", boss, harness.JSON(map[string]string{"url": url}))
		if a.Status != http.StatusUnprocessableEntity ||
			!strings.Contains(string(a.Body), `"code":"`+code+`"`) ||
			!strings.Contains(string(a.Body), `"attribute":"url"`) {
			t.Errorf("creating a webhook to %q returned %d %s, want 422 %s", url, a.Status, a.Body, code)
		}
	}
	trap.wantNoCalls(t)
}

// A delivery is a webhook delivery, as the API returns it.
type delivery struct {
	State, Error string
	Status       int
}

// deliveries returns the deliveries of a webhook.
func deliveries(t *testing.T, p *harness.Project, boss harness.Option, path string) []delivery {
	t.Helper()
	var list struct{ Data []delivery }
	p.Get(t, path+"/deliveries", boss).Want(t, 200).Read(t, &list)
	return list.Data
}

// rawDeliveries returns the deliveries of a webhook in JSON, with their bodies.
func rawDeliveries(t *testing.T, p *harness.Project, boss harness.Option, path string) (all []string) {
	t.Helper()
	var list struct{ Data []struct{ ID string } }
	p.Get(t, path+"/deliveries", boss).Want(t, 200).Read(t, &list)
	for _, d := range list.Data {
		all = append(all, string(p.Get(t, path+"/deliveries/"+d.ID, boss).Want(t, 200).Body))
	}
	return all
}

// privateName returns a host name from /etc/hosts that resolves to a private address, although it
// does not look like a private name.
func privateName(t *testing.T) string {
	t.Helper()
	hosts, err := os.Open("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	defer hosts.Close()

	for lines := bufio.NewScanner(hosts); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || net.ParseIP(fields[0]) == nil {
			continue
		}
		for _, name := range fields[1:] {
			if ip := net.ParseIP(fields[0]); (ip.IsLoopback() || ip.IsPrivate()) &&
				!strings.HasSuffix(name, "localhost") {
				return name
			}
		}
	}
	t.Fatal("no name in /etc/hosts resolves to a private address: add a line such as 127.0.0.1 inside.example")
	return ""
}

// listenAnywhere listens on all addresses of this machine. Each request sends a value to hit.
func listenAnywhere(t *testing.T) (port int, hit chan struct{}) {
	t.Helper()
	hit = make(chan struct{}, 100)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}

	srv := &http.Server{
		Handler: http.HandlerFunc(
			func(http.ResponseWriter, *http.Request) { hit <- struct{}{} }),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return l.Addr().(*net.TCPAddr).Port, hit
}

// notPermitted is the error of a request to a private address. It does not reveal the address.
const notPermitted = "requests to the host's address are not allowed, unless the host is in egress.allow"

// TestI12Dial shows that a webhook is not sent to a name that resolves to a private address. The
// server learns the address only when it dials.
func TestI12Dial(t *testing.T) {
	p := project(t)
	boss := manager(t, p)
	name := privateName(t)
	port, hit := listenAnywhere(t)

	url := fmt.Sprintf("http://%s:%d/?token=secret", name, port)
	made := p.Post(t, "/api/fabric/webhooks", boss, harness.JSON(map[string]string{"url": url})).Want(t,
		201).Object(t)
	path := "/api/fabric/webhooks/" + made["id"].(string)
	p.NewSubscriber(t)

	harness.Eventually(t, time.Minute, "an attempt", func() error {
		for _, d := range deliveries(t, p, boss, path) {
			if d.Error == notPermitted && d.Status == 0 && d.State == "pending" {
				return nil
			}
		}
		return fmt.Errorf("%+v", deliveries(t, p, boss, path))
	})

	if len(hit) > 0 {
		t.Errorf("%s was reached", url)
	}
	for _, d := range rawDeliveries(t, p, boss, path) {
		if strings.Contains(d, "127.") || strings.Contains(d, "::1") || !strings.Contains(d, `"response_body":""`) {
			t.Errorf("the delivery reveals an address or a response: %s", d)
		}
	}
	if strings.Contains(harness.Shared(t).Log(), "token=secret") {
		t.Error("the log contains the query of a webhook's URL")
	}
}

// TestI12Logout shows that no back-channel logout is sent to a name that resolves to a private
// address.
func TestI12Logout(t *testing.T) {
	p := project(t)
	port, hit := listenAnywhere(t)
	c := p.NewClient(t, "web", "--first-party", "--backchannel-logout-uri",
		fmt.Sprintf("http://%s:%d/?token=secret", privateName(t), port))
	sub := p.NewSubscriber(t)
	tokens, _ := c.SignIn(t, sub, "openid")
	p.Command(t, "", "subscriber", "revoke", sub.ID, "--session", tokens.SessionOf(t))

	harness.Eventually(t, time.Minute, "an attempt", func() error {
		out := p.Command(t, "", "client", "logouts", c.ID, "-o", "json")
		if strings.Contains(out, `"attempts":0`) ||
			!strings.Contains(out, `"error":"`+notPermitted+`"`) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})

	if len(hit) > 0 {
		t.Error("the client was reached")
	}
	if strings.Contains(harness.Shared(t).Log(), "token=secret") {
		t.Error("the log contains the query of a client's URI")
	}
}

// TestI12Redirect shows that the server does not follow a redirect from an allowed receiver to a
// forbidden address. It also shows that the server ignores proxies in its environment.
func TestI12Redirect(t *testing.T) {
	t.Parallel()
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal,
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9"}})
	p := s.NewProject(t)
	boss := manager(t, p)

	trap := newTrap(t)
	front := httptest.NewServer(http.RedirectHandler(trap.URL, http.StatusPermanentRedirect))
	t.Cleanup(front.Close)
	made := p.Post(t, "/api/fabric/webhooks", boss,
		harness.JSON(map[string]string{"url": strings.Replace(
			front.URL, "127.0.0.1", "localhost", 1)})).Want(t, 201).Object(t)
	path := "/api/fabric/webhooks/" + made["id"].(string)

	p.NewSubscriber(t)
	harness.Eventually(t, time.Minute, "an attempt", func() error {
		if all := deliveries(t, p, boss, path); len(all) != 1 ||
			all[0].Status != http.StatusPermanentRedirect || all[0].State != "pending" {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
	if all := rawDeliveries(t, p, boss, path); len(all) != 1 || !strings.Contains(all[0], `"response_body":""`) {
		t.Errorf("the body of a redirect was stored: %v", all)
	}
	trap.wantNoCalls(t)
}
