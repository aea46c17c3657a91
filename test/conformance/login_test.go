package conformance

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// longState returns a state of 128 characters. The suite uses this length to detect truncation.
func longState() string {
	return (rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text())[:128]
}

// uiErrors lists the errors for a request with prompt=none that cannot be answered without a page.
var uiErrors = []string{"interaction_required", "login_required", "account_selection_required", "consent_required"}

// again logs in again in the module's browser. It checks that the login asks for a password if asks
// is true, and does not ask otherwise.
func (m *module) again(asks bool, params ...string) signedIn {
	m.Helper()
	r := m.request(params...)
	p := m.browser.Open(m, r.url())
	m.check(p.Has("login-submit") == asks, "the second login asks for a password: %v, want %v",
		p.Has("login-submit"), asks)
	s := r.finish(m.parameters(m.signIn(p)))
	m.userInfo(s)
	return s
}

// await waits until the given time.
func (m *module) await(when time.Time) {
	m.Helper()
	harness.Eventually(m, time.Minute, "the clock to advance", func() error {
		if left := time.Until(when); left > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
}

// promptLogin checks that prompt=login asks for the password again.
func promptLogin(m *module) {
	first := m.request().flow()
	m.await(m.moment(first.claims, "auth_time").Add(time.Second))
	m.wantLaterLogin(first, m.again(true, "prompt", "login"))
}

// maxAge1 checks that a login older than max_age is repeated.
func maxAge1(m *module) {
	first := m.request().flow()
	m.await(m.moment(first.claims, "auth_time").Add(3 * time.Second))
	second := m.again(true, "max_age", "1")
	m.wantLaterLogin(first, second)
	m.check(time.Since(m.moment(second.claims, "auth_time")) < skew, "auth_time %v is too old",
		second.claims["auth_time"])
}

// wantLaterLogin checks that the second auth_time is later than the first.
func (m *module) wantLaterLogin(first, second signedIn) {
	m.Helper()
	before, after := m.moment(first.claims, "auth_time"), m.moment(second.claims, "auth_time")
	m.check(after.After(before), "auth_time is %v after a new login and was %v before, want a later time",
		after, before)
}

// wantSameLogin checks that both tokens belong to the same login (auth_time and sub).
func (m *module) wantSameLogin(first, second signedIn) {
	m.Helper()
	m.check(first.claims["auth_time"] == second.claims["auth_time"],
		"auth_time is %v without a new login and was %v before",
		second.claims["auth_time"], first.claims["auth_time"])
	m.check(first.sub() == second.sub(), "sub is %s the second time and was %s before", second.sub(),
		first.sub())
}

// maxAge10000 checks that a login younger than max_age is reused.
func maxAge10000(m *module) {
	first := m.request("max_age", "15000").flow()
	second := m.again(false, "max_age", "10000")
	m.check(first.claims["auth_time"] != nil && second.claims["auth_time"] != nil,
		"auth_time is missing although max_age was sent")
	m.wantSameLogin(first, second)
}

func promptNoneNotLoggedIn(m *module) {
	r := m.request("prompt", "none", "state", longState())
	r.wantError(m.parameters(m.browser.Open(m, r.url())), uiErrors...)
}

func promptNoneLoggedIn(m *module) {
	first := m.request().flow()
	m.wantSameLogin(first, m.again(false, "prompt", "none"))
}

func idTokenHint(m *module) {
	first := m.request().flow()
	m.wantSameLogin(first, m.again(false, "prompt", "none", "id_token_hint", first.IDToken))
}
