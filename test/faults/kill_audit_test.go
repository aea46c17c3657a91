package faults

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/test/harness"
)

// TestKillDuringAudit kills the server while people sign in and clients redeem codes. The audit
// trail stays intact, and contains every acknowledged login and grant.
func TestKillDuringAudit(t *testing.T) {
	harness.Rows(t)
	const workers = 4
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_LIMITS__LOGIN_PER_NETWORK=0",
		"SELVAGE_LIMITS__LOGIN_PER_ACCOUNT=0"}})
	p := s.NewProject(t)
	c := p.NewClient(t, "web", "--first-party", "--id-token-alg", "ES256")

	subs := make([]harness.Subscriber, workers)
	for i := range subs {
		subs[i] = p.NewSubscriber(t)
	}

	var acked []acknowledged
	for round := range rounds() {
		count := newCounter()
		done := make([][]acknowledged, workers)
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { done[i] = signInUntilKilled(t, c, subs[i], count) })
		}

		count.await(5 + 3*round) // a different moment in each round
		s.Kill()
		wg.Wait()
		s.Restart(t)
		for _, each := range done {
			acked = append(acked, each...)
		}
		report := s.CLI(t, "", "audit", "verify")
		if report["whole"] != true {
			t.Fatalf("audit verify after a kill reported %v, want an intact trail", report)
		}
	}

	written := eventsOf(t, s)
	for _, a := range acked {
		if !written["login "+a.session] {
			t.Errorf("the login %s was acknowledged but is not in the audit trail", a.session)
		}
		if !written["grant.created "+a.grant] {
			t.Errorf("the grant %s was acknowledged but is not in the audit trail", a.grant)
		}
	}
	t.Logf("%d logins were acknowledged, and the trail has %d events", len(acked), len(written))
}

// An acknowledged login is a login whose client received tokens.
type acknowledged struct{ session, grant string }

// signInUntilKilled signs in with the password, in a new browser each time, until the server is
// killed. It returns the acknowledged logins.
func signInUntilKilled(t *testing.T, c *harness.Client, sub harness.Subscriber, acked *counter) (done []acknowledged) {
	for {
		f := c.NewFlow("openid offline_access")
		code := ""
		gone := giveUp(t, func(t harness.T) { code = c.Browser().SignIn(t, f.URL(), sub).Get("code") })
		if gone && isGone(c.Project) {
			return done
		} else if gone {
			continue
		}

		tokens, err := f.QuickRedeem(code)
		if err != nil && isGone(c.Project) {
			return done
		} else if err != nil {
			continue
		}

		done = append(done, acknowledged{sidOf(t, tokens.IDToken), grantOf(t, tokens.RefreshToken)})
		acked.add()
	}
}

// sidOf returns the session ID in an ID token.
func sidOf(t *testing.T, token string) string {
	t.Helper()
	var claims struct {
		SessionID string `json:"sid"`
	}

	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}

	if err != nil || claims.SessionID == "" {
		t.Errorf("an ID token has no sid: %v", err)
	}
	return claims.SessionID
}

// grantOf returns the ID of the grant to which a refresh token belongs. It is the first part of the
// token.
func grantOf(t *testing.T, refresh string) string {
	t.Helper()
	head, _, _ := strings.Cut(refresh, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil || len(raw) != 16 {
		t.Errorf("a refresh token does not begin with the ID of a grant")
		return ""
	}
	return uuid.UUID(raw).String()
}

// eventsOf returns the action and target of each event in the audit trail. For a login, the session
// takes the place of the target.
func eventsOf(t *testing.T, s *harness.Server) map[string]bool {
	t.Helper()
	written := make(map[string]bool)
	for line := range strings.Lines(s.Command(t, "", "audit", "export")) {
		var e struct {
			Action   string            `json:"action"`
			Outcome  string            `json:"outcome"`
			TargetID string            `json:"target_id"`
			Detail   map[string]string `json:"detail"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("audit export printed %q: %v", line, err)
		}

		if e.Action == "login" && e.Outcome == "done" {
			e.TargetID = e.Detail["session"]
		}
		written[e.Action+" "+e.TargetID] = true
	}
	return written
}

// A stopper is a test in which Fatalf ends only the current attempt.
type stopper struct{ *testing.T }

type stopped struct{}

func (stopper) Fatalf(string, ...any) { panic(stopped{}) }

// giveUp runs an attempt and reports whether it failed.
func giveUp(t *testing.T, do func(harness.T)) (failed bool) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case stopped{}:
			failed = true
		default:
			panic(cause)
		}
	}()
	do(stopper{t})
	return false
}
