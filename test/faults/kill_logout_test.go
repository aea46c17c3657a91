package faults

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestKillBeforeLogout kills the server while logins end. The client is notified of every logout
// that the server acknowledged, and of no login that continues.
func TestKillBeforeLogout(t *testing.T) {
	t.Parallel()
	const workers, each = 2, 12
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}})
	p := s.NewProject(t)
	h := harness.NewHangup(t)
	c := p.NewClient(t, "web", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric",
		"--backchannel-logout-uri", h.URL)
	sub := p.NewSubscriber(t)

	logins := make([][]*endingLogin, workers)
	for i := range logins {
		for range each {
			tokens, _ := c.SignIn(t, sub, "openid")
			logins[i] = append(logins[i], &endingLogin{sid: tokens.SessionOf(t), access: tokens.AccessToken})
		}
	}

	for round := range min(rounds(), 2) {
		acked := newCounter()
		var wg sync.WaitGroup
		for _, mine := range logins {
			wg.Go(func() { endUntilKilled(p, sub, mine, acked) })
		}

		acked.await(2 + 3*round)
		s.Kill()
		wg.Wait()
		wantWhole(t, s)
		s.Restart(t)
	}

	// A login may have ended even if the server was killed before it acknowledged the logout.
	var all, going []string
	for _, l := range slices.Concat(logins...) {
		if l.acked || p.Get(t, "/subscriber/info", harness.Bearer(l.access)).Status == http.StatusUnauthorized {
			all = append(all, l.sid)
		} else {
			going = append(going, l.sid)
		}
	}

	delivered := func() (sids []string) {
		for _, l := range h.Told(t) {
			sids = append(sids, l.SessionID)
		}
		return sids
	}

	harness.Eventually(t, tellDeadline, "all acknowledged logouts to be delivered", func() error {
		for _, sid := range all {
			if !slices.Contains(delivered(), sid) {
				return fmt.Errorf("the logout %s is not among the %d that were delivered, of %d", sid,
					len(delivered()), len(all))
			}
		}
		return nil
	})

	for _, sid := range going {
		if slices.Contains(delivered(), sid) {
			t.Errorf("the client was notified of the login %s, which has not ended", sid)
		}
	}
}

// An endingLogin is a login that the test ends.
type endingLogin struct {
	sid, access string
	acked       bool
}

// endUntilKilled ends one login after another until the server is killed. It records which logouts
// the server acknowledged.
func endUntilKilled(p *harness.Project, sub harness.Subscriber, logins []*endingLogin, acked *counter) {
	for _, l := range logins {
		if l.acked {
			continue
		}
		a, err := p.TryPatiently("DELETE", "/api/fabric/resources/subscribers/"+sub.ID+"/sessions/"+l.sid, p.Basic())
		if err != nil || a.Status != http.StatusNoContent {
			return
		}
		l.acked = true
		acked.add()
	}
}
