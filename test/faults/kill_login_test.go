package faults

import (
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// A login contains the code and the refresh tokens that the server acknowledged to a client in one
// login.
type login struct {
	flow    *harness.Flow
	code    string
	refresh string // the newest acknowledged refresh token
	old     string // the refresh token before that; "" if there is none
	unsure  bool   // the last refresh failed, but may have used up the newest token
}

// TestKillDuringLogins kills the server while clients redeem codes and refresh tokens. No
// acknowledged token is lost, and no used code or token is valid again.
func TestKillDuringLogins(t *testing.T) {
	const workers = 4
	s := harness.Start(t)
	p := s.NewProject(t)
	c := p.NewClient(t, "web", "--first-party", "--id-token-alg", "ES256")
	sub := p.NewSubscriber(t)
	_, b := c.SignIn(t, sub, "openid offline_access")

	for round := range rounds() {
		acked := newCounter()
		logins := make([][]*login, workers)
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { logins[i] = logInUntilKilled(c, b.Cookies(), acked) })
		}

		acked.await(5 + 3*round) // a different moment in each round
		s.Kill()
		wg.Wait()
		wantWhole(t, s)
		s.Restart(t)

		for _, each := range logins {
			for _, l := range each {
				l.check(t)
			}
		}

		if _, err := c.NewFlow("openid").QuickCode(b.Cookies()); err != nil {
			t.Errorf("the browser's login was lost when the server was killed: %v", err)
		}
	}
}

// logInUntilKilled signs in repeatedly until the server is killed. It counts each redeemed code and
// each refresh in acked.
func logInUntilKilled(c *harness.Client, cookies harness.Option, acked *counter) (done []*login) {
	for {
		l := &login{flow: c.NewFlow("openid offline_access")}
		code, err := l.flow.QuickCode(cookies)
		if err != nil && isGone(c.Project) {
			return done
		} else if err != nil {
			continue
		}

		tokens, err := l.flow.QuickRedeem(code)
		if err != nil && isGone(c.Project) {
			return done
		} else if err != nil {
			continue
		}

		l.code, l.refresh = code, tokens.RefreshToken
		done = append(done, l)
		acked.add()

		tokens, err = c.QuickRefresh(l.refresh)
		if l.unsure = err != nil; l.unsure && isGone(c.Project) {
			return done
		} else if l.unsure {
			continue
		}
		l.old, l.refresh = l.refresh, tokens.RefreshToken
		acked.add()
	}
}

// check checks that the server still knows what it acknowledged of a login before it was killed.
func (l *login) check(t *testing.T) {
	t.Helper()
	c := l.flow.Client
	if _, err := c.QuickRefresh(l.refresh); err != nil && !l.unsure {
		t.Errorf("an acknowledged refresh token was lost when the server was killed: %v", err)
	}
	if l.old != "" {
		harness.WantInvalidGrant(t, "a refresh token that was used before the kill")(c.QuickRefresh(l.old))
	}
	harness.WantInvalidGrant(t, "a code that was redeemed before the kill")(l.flow.QuickRedeem(l.code))
}
