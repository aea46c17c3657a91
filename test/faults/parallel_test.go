package faults

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// crowd is how many ask at once.
const crowd = 64

// atOnce asks for tokens many times at once and gives what the one that got some
// was given. All others must have been refused.
func atOnce(t *testing.T, what string, ask func() (harness.Tokens, error)) harness.Tokens {
	t.Helper()
	var (
		begin   = make(chan struct{})
		answers [crowd]harness.Tokens
		faults  [crowd]error
		wg      sync.WaitGroup
	)
	for i := range crowd {
		wg.Go(func() {
			<-begin
			answers[i], faults[i] = ask()
		})
	}
	close(begin)
	wg.Wait()
	var winners []harness.Tokens
	for i, err := range faults {
		if err == nil {
			winners = append(winners, answers[i])
			continue
		}
		wantInvalidGrant(t, what)(answers[i], err)
	}
	if len(winners) != 1 {
		t.Fatalf("%s: %d of %d got tokens, want one", what, len(winners), crowd)
	}
	return winners[0]
}

// TestParallelRedemption redeems one code many times at once. One wins, and
// since the code was used twice, what it got does not last.
func TestParallelRedemption(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	sub := p.NewSubscriber(t)
	_, b := c.SignIn(t, sub, "openid offline_access")
	for range 5 {
		f := c.NewFlow("openid offline_access")
		code, err := f.QuickCode(b.Cookies())
		if err != nil {
			t.Fatal(err)
		}
		won := atOnce(t, "one code at once", func() (harness.Tokens, error) { return f.QuickRedeem(code) })
		wantDead(t, c, won)
	}
}

// TestParallelRefresh uses one refresh token many times at once. One wins, and
// since it was used twice, the family ends.
func TestParallelRefresh(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	sub := p.NewSubscriber(t)
	b := c.Browser()
	for range 5 {
		tokens := c.SignInWith(t, b, sub, "openid offline_access")
		won := atOnce(t, "one refresh token at once", func() (harness.Tokens, error) { return c.QuickRefresh(tokens.RefreshToken) })
		wantDead(t, c, won)
	}
}

// TestParallelFabricRefresh does the same to the refresh token of a SAT.
func TestParallelFabricRefresh(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	sat := p.NewSAT(t, "ada")
	statuses := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range crowd {
		wg.Go(func() {
			a, err := p.Try("POST", "/api/fabric/subscribers/tokens/refresh", p.Basic(), harness.JSON(map[string]string{"refresh_token": sat.RefreshToken}))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			statuses[a.Status]++
		})
	}
	wg.Wait()
	if statuses[201] != 1 || statuses[422] != crowd-1 {
		t.Errorf("one fabric refresh token at once gives %v, want one 201 and %d 422", statuses, crowd-1)
	}
}

// TestParallelReference asks for the token of one new reference many times at
// once: one subscriber is made.
func TestParallelReference(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	ids := make([]string, crowd)
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			a, err := p.Try("POST", "/api/fabric/subscribers/tokens", p.Basic(), harness.JSON(map[string]string{"reference": "grace"}))
			if err != nil || a.Status != 200 {
				t.Errorf("token = %d %s, %v, want 200", a.Status, a.Body, err)
				return
			}
			var sat harness.SAT
			if err := json.Unmarshal(a.Body, &sat); err != nil {
				t.Error(err)
			}
			ids[i] = sat.SubscriberID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("one reference at once gave the subscribers %s and %s", ids[0], id)
		}
	}
}

// wantDead ends when the tokens have been refused.
func wantDead(t *testing.T, c *harness.Client, tokens harness.Tokens) {
	t.Helper()
	harness.WithinASecond(t, "an access token of a grant that was replayed", func() error {
		return c.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).StatusIs(401)
	})
	wantInvalidGrant(t, "a refresh token of a grant that was replayed")(c.QuickRefresh(tokens.RefreshToken))
}
