package nodes

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestLogoutNotifiedOnce ends logins at two nodes with several commands and API requests. The
// client is notified of each logout once. If a node is killed while the client rejects
// notifications, the remaining node delivers them, perhaps more than once.
func TestLogoutNotifiedOnce(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	t.Parallel()
	n := startLocalHooks(t)
	p := n.NewProject(t)
	h := harness.NewHangup(t)
	c := p.NewClient(t, "web", "--first-party", "--access-token", "fabric", "--backchannel-logout-uri", h.URL,
		"--backchannel-logout-session-required")

	ways := []func(at *harness.Server, sub, sid string){
		func(at *harness.Server, sub, sid string) {
			at.Command(t, "", "subscriber", "revoke", sub, "--session", sid)
		},
		func(at *harness.Server, sub, sid string) {
			at.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub+"/sessions/"+sid, p.Basic()).Want(t, 204)
		},
		func(at *harness.Server, sub, _ string) {
			at.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub+"/tokens", p.Basic()).Want(t, 204)
		},
		func(at *harness.Server, sub, _ string) { at.Command(t, "", "subscriber", "update", sub, "--disabled") },
		func(at *harness.Server, sub, _ string) {
			at.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub, p.Basic()).Want(t, 204)
		},
	}

	var sids []string
	// end ends one new login in each way, at both nodes concurrently.
	end := func() {
		t.Helper()
		var work sync.WaitGroup
		var do []func()
		for i, way := range ways {
			sub := p.NewSubscriber(t)
			tokens, _ := c.SignIn(t, sub, loginScope)
			s, _ := n.Each[0].Connect(t, tokens.AccessToken, "")
			sid := tokens.SessionOf(t)
			sids = append(sids, sid)
			do = append(do, func() { way(n.Each[i%2], sub.ID, sid) }, func() {
				if code := s.Closed(); code != harness.ClosedUnauthorized {
					t.Errorf("the socket of an ended login was closed with %d, want %d", code,
						harness.ClosedUnauthorized)
				}
			})
		}

		for _, each := range do {
			work.Go(each)
		}
		work.Wait()
	}

	checkTold := func() error {
		var delivered []string
		for _, l := range h.Told(t) {
			delivered = append(delivered, l.SessionID)
		}
		for _, sid := range sids {
			if !slices.Contains(delivered, sid) {
				return fmt.Errorf("the logout %s is not among those delivered: %v", sid, delivered)
			}
		}
		return nil
	}

	end()
	harness.Eventually(t, soon, "all logouts to be delivered", checkTold)
	if got := len(h.Told(t)); got != len(sids) {
		t.Errorf("%d logout tokens were delivered for %d logouts, want one for each logout", got, len(sids))
	}

	h.Answer(503)
	end()
	n.Each[1].Kill()
	h.Answer(204)
	harness.Eventually(t, 2*soon, "all logouts to be delivered by the remaining node", checkTold)
}
