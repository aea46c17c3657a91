package faults

import (
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestKillAfterProofs kills the server while clients use DPoP proofs. If a proof was accepted
// before the kill, it is refused after the restart.
func TestKillAfterProofs(t *testing.T) {
	t.Parallel()
	const workers, endpoint, api = 4, "/oauth/token", "/api/fabric/resources/subscribers"
	s := harness.StartConfig(t, harness.Config{})
	p := s.NewProject(t)
	c := p.NewClient(t, "service", "--scope", "Voice", "--dpop-bound-access-tokens")
	h := harness.NewHolder(t, p.Issuer())

	ask := func(proof harness.Option) (harness.Answer, error) {
		form := url.Values{"grant_type": {"client_credentials"}, "scope": {"Voice"}}
		return p.Try("POST", endpoint, append(c.Authenticated(form), proof)...)
	}
	first, err := ask(h.Proof("POST", endpoint, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	var tokens harness.Tokens
	first.Want(t, http.StatusOK).Read(t, &tokens)
	read := func(proof harness.Option) (harness.Answer, error) {
		return p.Try("GET", api, harness.Header("Authorization", "DPoP "+tokens.AccessToken), proof)
	}

	for round := range rounds() {
		acked := newCounter()
		tokenProofs, apiProofs := make([][]harness.Option, workers), make([][]harness.Option, workers)
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				tokenProofs[i] = useUntilKilled(p, ask, acked,
					func() harness.Option { return h.Proof("POST", endpoint, "", "") })
			})
			wg.Go(func() {
				apiProofs[i] = useUntilKilled(p, read, acked,
					func() harness.Option { return h.Proof("GET", api, tokens.AccessToken, "") })
			})
		}

		acked.await(20 + 7*(round%5))
		s.Kill()
		wg.Wait()
		wantWhole(t, s)
		s.Restart(t)

		for i := range workers {
			for _, proof := range tokenProofs[i] {
				p.Post(t, endpoint, append(c.Authenticated(url.Values{"grant_type": {"client_credentials"},
					"scope": {"Voice"}}), proof)...).WantError(t, 400, "invalid_dpop_proof")
			}
			for _, proof := range apiProofs[i] {
				p.Get(t, api, harness.Header("Authorization", "DPoP "+tokens.AccessToken), proof).Want(t, 401)
			}
		}
		p.Get(t, api, harness.Header("Authorization", "DPoP "+tokens.AccessToken),
			h.Proof("GET", api, tokens.AccessToken, "")).Want(t, 200)
	}
}

// useUntilKilled uses new proofs until the server is killed, and returns the accepted ones.
func useUntilKilled(p *harness.Project, use func(harness.Option) (harness.Answer, error), acked *counter,
	prove func() harness.Option) (accepted []harness.Option) {
	for {
		proof := prove()
		a, err := use(proof)
		if err != nil && isGone(p) {
			return accepted
		}
		if err == nil && a.Status == http.StatusOK {
			accepted = append(accepted, proof)
			acked.add()
		}
	}
}
