package attack

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// limited returns a project on a server with its own limits. env contains the limits as NAME=N, and
// other environment variables with their full names.
func limited(t *testing.T, env ...string) *harness.Project {
	t.Helper()
	for i, e := range env {
		if !strings.HasPrefix(e, "SELVAGE_") {
			env[i] = "SELVAGE_LIMITS__" + e
		}
	}
	return harness.StartConfig(t, harness.Config{Env: env}).NewProject(t)
}

// wantLater checks that an answer is a 429 with a Retry-After header and the given text in its
// body.
func wantLater(t *testing.T, a harness.Answer, body string) {
	t.Helper()
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if a.Status != http.StatusTooManyRequests || err != nil || after < 1 || !strings.Contains(string(a.Body), body) {
		t.Errorf("a request beyond the limit returned %d %s with Retry-After %q, want 429 with %s", a.Status,
			a.Body,
			a.Header.Get("Retry-After"), body)
	}
}

// wantLimited checks that a request is refused after a limit has been used up. A limit permits one
// more request for each period that has passed since the time began, so some requests may still
// succeed first. The length of a period is each.
func wantLimited(t *testing.T, began time.Time, each time.Duration, body string, ask func() harness.Answer) {
	t.Helper()
	for through := 0; ; through++ {
		a := ask()
		if a.Status == http.StatusTooManyRequests || through >= int(time.Since(began)/each) {
			wantLater(t, a, body)
			return
		}
	}
}

// TestLimitsOfKeys shows that, if a key exceeds its limit, each API refuses it in its own format.
// After the limit for writes has been used up, reads still succeed. Other keys are not affected.
func TestLimitsOfKeys(t *testing.T) {
	p := limited(t, "API_REQUESTS=6", "API_WRITES=2")
	other := p.Server.NewProject(t)
	make := func(p *harness.Project, i int) harness.Answer {
		return p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
			harness.JSON(map[string]string{"reference": fmt.Sprint("ref", i)}))
	}

	began := time.Now()
	for i := range 2 {
		make(p, i).Want(t, 200)
	}
	wantLimited(t, began, time.Minute/2, `{"error":"Too Many Requests"}`,
		func() harness.Answer { return make(p, 3) })

	for range 3 {
		p.Get(t, p.LaML("/Recordings.json"), p.Basic()).Want(t, 200)
	}

	for path, body := range map[string]string{
		p.LaML("/Recordings.json"):   `"status":429`,
		"/api/relay/rest/recordings": `"error`,
		"/api/fabric/resources":      `{"error":"Too Many Requests"}`,
	} {
		wantLimited(t, began, time.Minute/6, body, func() harness.Answer { return p.Get(t, path, p.Basic()) })
	}

	make(other, 1).Want(t, 200)
	p.Get(t, "/api/fabric/resources", harness.Basic(p.ID, "PT_wrong")).Want(t, 401)
}

// TestLimitsOfNetworks shows that limits apply to networks. A /64 is one network, and other
// networks are not affected. The server uses a forwarded address only if a trusted proxy sent it.
func TestLimitsOfNetworks(t *testing.T) {
	for _, tt := range []struct {
		trusted, name string
		elsewhere     bool // a different address in the header means a different network
	}{{"127.0.0.1", "a trusted proxy", true}, {"192.0.2.1", "a stranger", false}} {
		t.Run(tt.name, func(t *testing.T) {
			p := limited(t, "SELVAGE_TRUSTED_PROXIES="+tt.trusted, "TOKEN_PER_CLIENT=2",
				"AUTHORIZE_PER_NETWORK=2", "MEDIA_MISSES_PER_NETWORK=2")
			c := p.NewClient(t, "service", "--scope", "Voice")
			media, found := p.LaML("/Recordings/2c3d5f0e-0b0c-4b6e-9f8a-0d8f6b1a2c3d.wav"),
				p.LaML("/Recordings/"+p.Upload(t, harness.Tone(800, 40))+".wav")

			began := time.Now()
			for name, ask := range map[string]func(from string) harness.Answer{
				"token": func(from string) harness.Answer {
					return p.Post(t, "/oauth/token",
						append(c.Authenticated(url.Values{"grant_type": {"client_credentials"}}),
							harness.Header("X-Forwarded-For", from))...)
				},
				"authorize": func(from string) harness.Answer {
					return p.Get(t, "/login/oauth/authorize", harness.Header("X-Forwarded-For", from))
				},
				"media": func(from string) harness.Answer {
					return p.Get(t, media, harness.Header("X-Forwarded-For", from))
				},
			} {
				for i := range 2 {
					if a := ask(fmt.Sprintf("2001:db8::%d", i)); a.Status == http.StatusTooManyRequests {
						t.Errorf("%s %d = %d, want no 429", name, i, a.Status)
					}
				}
				wantLimited(t, began, time.Minute/2, "", func() harness.Answer {
					return ask("192.0.2.66, 2001:db8::ffff")
				})
				if got := ask("2001:db8:0:1::1").Status != http.StatusTooManyRequests; got != tt.elsewhere {
					t.Errorf("%s from another network was within the limit: %v, want %v", name, got,
						tt.elsewhere)
				}
			}

			// After too many misses, requests for existing Sids are refused too, so that guesses
			// reveal nothing.
			wantLimited(t, began, time.Minute/2, `"status":429`, func() harness.Answer {
				from := harness.Header("X-Forwarded-For", "2001:db8::1")
				p.Get(t, media, from)
				return p.Get(t, found, from)
			})
			if tt.elsewhere {
				for range 5 { // requests for existing recordings do not count
					p.Get(t, found, harness.Header("X-Forwarded-For", "203.0.113.1")).Want(t, 200)
				}
			}
		})
	}
}

// TestLimitOfAccountPages shows that opening the account page without a login counts like an
// authorization request, because the server stores a request in both cases.
func TestLimitOfAccountPages(t *testing.T) {
	p := limited(t, "AUTHORIZE_PER_NETWORK=2")
	began := time.Now()
	for range 2 {
		p.Get(t, "/account?project="+p.ID).Want(t, 303)
	}
	for _, path := range []string{"/account?project=" + p.ID, "/login/oauth/authorize"} {
		wantLimited(t, began, time.Minute/2, "", func() harness.Answer { return p.Get(t, path) })
	}
}

// TestLimitsOfRanges shows that all networks in an IPv6 /48 together may send five times as many
// requests as one network. Other ranges are not affected.
func TestLimitsOfRanges(t *testing.T) {
	p := limited(t, "SELVAGE_TRUSTED_PROXIES=127.0.0.1", "AUTHORIZE_PER_NETWORK=4", "MAIL_PER_NETWORK=1",
		"DEVICE_CODES=1")
	c := p.NewClient(t, "spa")

	from := func(i int) harness.Option {
		return harness.Header("X-Forwarded-For", fmt.Sprintf("2001:db8:1:%x::1", i))
	}
	elsewhere := harness.Header("X-Forwarded-For", "2001:db8:2::1")

	began, next := time.Now(), 0
	authorize := func() harness.Answer {
		next++
		return p.Get(t, "/login/oauth/authorize", from(next))
	}
	for range 20 {
		authorize().Want(t, 400)
	}
	wantLimited(t, began, time.Minute/20, "", authorize)

	b := p.Browser()
	login := b.Open(t, c.NewFlow("openid").URL(), elsewhere)
	forgot := b.Open(t, "/forgot?id="+login.URL.Query().Get("id"))
	device := b.Open(t, "/device")

	for name, ask := range map[string]func(opts ...harness.Option) harness.Page{
		"mail": func(opts ...harness.Option) harness.Page {
			return b.Submit(t, forgot, "forgot-submit", map[string]string{"username": "ada@example.com"}, opts...)
		},
		"device": func(opts ...harness.Option) harness.Page {
			return b.Submit(t, device, "device-submit", map[string]string{"user-code": "BBBB-BBBB"}, opts...)
		},
	} {
		for i := range 5 {
			if a := ask(from(i)); a.Status == http.StatusTooManyRequests {
				t.Errorf("%s %d = %d, want no 429", name, i, a.Status)
			}
		}
		wantLater(t, ask(from(5)).Answer, "")
		if a := ask(elsewhere); a.Status == http.StatusTooManyRequests {
			t.Errorf("%s from another range returned %d, want no 429", name, a.Status)
		}
	}
}
