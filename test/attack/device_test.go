package attack

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// deviceCodes holds the codes that a device received.
type deviceCodes struct {
	Device string `json:"device_code"`
	User   string `json:"user_code"`
}

func beginDevice(t *testing.T, c *harness.Client) (w deviceCodes) {
	t.Helper()
	c.Post(t, "/oauth/device_authorization",
		harness.Form(url.Values{"client_id": {c.ID}, "scope": {"openid"}})).Want(t, 200).Read(t, &w)
	return w
}

func pollDevice(t *testing.T, c *harness.Client, code string) harness.Answer {
	t.Helper()
	return c.Token(t, pollOf(c, code))
}

func pollOf(c *harness.Client, code string) url.Values {
	return url.Values{"grant_type": {deviceGrant}, "client_id": {c.ID}, "device_code": {code}}
}

func newTV(t *testing.T, p *harness.Project) *harness.Client {
	t.Helper()
	return p.NewClient(t, "native", "--grant", "device_code", "--grant", "refresh_token")
}

// TestD8628Guesses shows that the number of wrong user codes from a network is limited. Beyond the
// limit, even a valid code is refused.
func TestD8628Guesses(t *testing.T) {
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_LIMITS__DEVICE_CODES=5"}})
	p := s.NewProject(t)
	d := beginDevice(t, newTV(t, p))
	const letters = "BCDFGHJK"

	refused := 0
	for i := range 8 {
		b := p.Browser() // new cookies do not help
		page := b.Submit(t, b.Open(t, "/device"), "device-submit",
			map[string]string{"user-code": "BBBB-BBB" + letters[i:i+1]})
		if page.Want(t, 422, 429); page.Status == 429 {
			refused++
		}
	}

	if refused != 3 {
		t.Errorf("%d of 8 guesses were refused, want 3", refused)
	}

	b := p.Browser()
	b.Submit(t, b.Open(t, "/device"), "device-submit", map[string]string{"user-code": d.User}).Want(t, 429)
}

// TestD8628OtherProject shows that a subscriber of another project cannot approve a device, neither
// with a password nor with an existing login.
func TestD8628OtherProject(t *testing.T) {
	p, other := project(t), project(t)
	c, stranger := newTV(t, p), other.NewSubscriber(t)
	d := beginDevice(t, c)

	b := other.Browser()
	login := b.Submit(t, b.Open(t, "/device"), "device-submit", map[string]string{"user-code": d.User})
	b.Submit(t, login, "login-submit", map[string]string{"username": stranger.Email,
		"password": stranger.Password}).Want(t, 422)

	foreign := newTV(t, other)
	pollDevice(t, foreign, d.Device).WantError(t, 400, "invalid_grant")
	pollDevice(t, c, d.Device).WantError(t, 400, "authorization_pending")

	_, signedIn := other.NewClient(t, "spa", "--first-party").SignIn(t, stranger, loginScope)
	page := signedIn.Submit(t, signedIn.Open(t, "/device"), "device-submit", map[string]string{"user-code": d.User})
	if page.Has("consent-allow") || !page.Has("login-submit") {
		t.Errorf("the page for a subscriber of another project is %d %s, want a login page", page.Status,
			page.URL.Path)
	}
}

// TestD8628Polls polls faster than permitted. Every early poll gets slow_down, even after other
// early polls. Altered device codes are invalid, and so is the user code in place of the device
// code.
func TestD8628Polls(t *testing.T) {
	c := newTV(t, project(t))
	d := beginDevice(t, c)
	last := time.Now()
	pollDevice(t, c, d.Device).WantError(t, 400, "authorization_pending")
	for range 3 {
		last = c.WantSlowDown(t, pollOf(c, d.Device), last)
	}

	for name, code := range map[string]string{
		"the user code": d.User,
		"cut off":       d.Device[:20],
		"with a suffix": d.Device + "A",
		"in lower case": strings.ToLower(d.Device),
	} {
		if a := pollDevice(t, c, code); a.Status != 400 || !strings.Contains(string(a.Body), "invalid_grant") {
			t.Errorf("polling with a device code (%s) returned %d %s, want invalid_grant", name, a.Status,
				a.Body)
		}
	}
}
