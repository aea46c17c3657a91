package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/history"
)

// end stops the clients, and checks what the cluster promises: no acknowledged change is lost, no
// code and no refresh token was used twice, and everything that was revoked is still revoked.
func (l *load) end() {
	l.t.Helper()
	close(l.stop)
	l.work.Wait()

	l.checkFaults()
	l.checkLogins()
	l.checkWrites()
	l.checkRevoked()
	if report := l.front.CLI(l.t, "", "audit", "verify"); report["whole"] != true {
		l.t.Errorf("the audit trail is damaged: %v", report)
	}
	l.t.Logf("%d logins, %d subscribers, %d recordings, %d revocations", len(l.logins), len(l.subscribers),
		len(l.recordings), len(l.revoked))
}

func (l *load) checkFaults() {
	l.t.Helper()
	for i, fault := range l.faults {
		if i < 5 {
			l.t.Errorf("a client got an answer that is never acceptable: %s", fault)
		}
	}
	if len(l.faults) > 5 {
		l.t.Errorf("%d more answers were unacceptable", len(l.faults)-5)
	}
}

// checked is the number of logins whose tokens and codes are used again at the end. For a release,
// the tokens and codes of all logins are used again.
const checked = 100

// checkLogins uses the newest refresh token of some random logins, and then their codes. It checks
// the histories of all logins.
func (l *load) checkLogins() {
	l.t.Helper()
	rand.Shuffle(len(l.logins), func(i, j int) { l.logins[i], l.logins[j] = l.logins[j], l.logins[i] })
	wrong := 0
	for i, it := range l.logins {
		again := i < checked || long()
		if again && it.newest != "" {
			it.history.Ask(0, history.Use{Token: it.newest}, func() (harness.Tokens, error) {
				return l.client.QuickRefresh(it.newest)
			})
		}
		if again {
			it.history.Ask(0, history.Use{}, func() (harness.Tokens, error) { return it.flow.QuickRedeem(it.code) })
		}

		if err := it.history.Check(history.Model{Lossy: true}); err != nil {
			if wrong++; wrong <= 3 {
				l.t.Errorf("the history of a login is impossible: %v", err)
			}
		}
	}

	if wrong > 3 {
		l.t.Errorf("the histories of %d of %d logins are impossible", wrong, len(l.logins))
	}
}

// checkWrites looks for all acknowledged subscribers and recordings.
func (l *load) checkWrites() {
	l.t.Helper()
	p := l.client.Project
	if len(l.subscribers) == 0 || len(l.recordings) == 0 {
		l.t.Errorf("%d subscribers and %d recordings were written, want some of both", len(l.subscribers),
			len(l.recordings))
	}

	for _, id := range l.subscribers {
		a, err := l.front.TryPatiently("GET", "/api/fabric/resources/subscribers/"+id, p.Basic())
		if err = errors.Join(err, a.StatusIs(200)); err != nil {
			l.t.Errorf("an acknowledged subscriber was lost: %v", err)
		}
	}
	for sid, sum := range l.recordings {
		a, err := l.front.TryPatiently("GET", p.LaML("/Recordings/"+sid+".wav"), p.Basic())
		if err = errors.Join(err, a.StatusIs(200)); err != nil || sha256.Sum256(a.Body) != sum {
			l.t.Errorf("an acknowledged recording of %d bytes was lost or changed: %v", len(a.Body), err)
		}
	}
}

// checkRevoked checks that every node refuses the revoked tokens.
func (l *load) checkRevoked() {
	l.t.Helper()
	if len(l.revoked) == 0 {
		l.t.Error("nothing was revoked")
	}
	for _, token := range l.revoked {
		for i, node := range l.front.Each {
			harness.Eventually(l.t, patience, fmt.Sprintf("node %d to refuse a revoked token", i+1), func() error {
				a, err := node.TryPatiently("GET", "/subscriber/info", harness.Bearer(token))
				return errors.Join(err, a.StatusIs(401))
			})
		}
	}
}
