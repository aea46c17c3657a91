package harness

import (
	"encoding/json"
	"errors"
	"sync"
)

// crowd is how many ask at once.
const crowd = 64

// crowdScope is what the logins ask for whose tokens a crowd wants.
const crowdScope = "openid offline_access"

// RedeemAtOnce redeems one code many times at once. One wins, and since the code
// was used twice, what it got does not last.
func RedeemAtOnce(t T, p *Project) {
	t.Helper()
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	_, b := c.SignIn(t, p.NewSubscriber(t), crowdScope)
	for range 5 {
		f := c.NewFlow(crowdScope)
		code, err := f.QuickCode(b.Cookies())
		if err != nil {
			t.Fatalf("%v", err)
		}
		wantDead(t, c, oneWins(t, "one code at once", func() (Tokens, error) { return f.QuickRedeem(code) }))
	}
}

// RefreshAtOnce uses one refresh token many times at once. All get the same new one,
// which goes on; when the first is used after that, the family ends.
func RefreshAtOnce(t T, p *Project) {
	t.Helper()
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	sub, b := p.NewSubscriber(t), c.Browser()
	for range 5 {
		tokens := c.SignInWith(t, b, sub, crowdScope)
		var answers [crowd]Tokens
		atOnce(func(i int) {
			var err error
			Patiently(func() (int, error) {
				answers[i], err = c.QuickRefresh(tokens.RefreshToken)
				return 0, err
			})
			if err != nil {
				t.Errorf("one refresh token at once: %v", err)
			}
		})
		for _, a := range answers {
			if a.RefreshToken != answers[0].RefreshToken {
				t.Fatalf("one refresh token at once gave two")
			}
		}
		next, err := c.QuickRefresh(answers[0].RefreshToken)
		if err != nil {
			t.Fatalf("the refresh token that all got: %v", err)
		}
		WantInvalidGrant(t, "the first refresh token, after the second was used")(c.QuickRefresh(tokens.RefreshToken))
		for _, dead := range []Tokens{next, answers[0], answers[crowd-1]} {
			wantDead(t, c, dead)
		}
	}
}

// RefreshFabricAtOnce does the same to the refresh token of a SAT.
func RefreshFabricAtOnce(t T, p *Project) {
	t.Helper()
	sat := p.NewSAT(t, "ada")
	statuses := map[int]int{}
	var mu sync.Mutex
	atOnce(func(int) {
		a, err := p.TryPatiently("POST", "/api/fabric/subscribers/tokens/refresh", p.Basic(),
			JSON(map[string]string{"refresh_token": sat.RefreshToken}))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Errorf("%v", err)
		}
		statuses[a.Status]++
	})
	if statuses[201] != 1 || statuses[422] != crowd-1 {
		t.Errorf("one fabric refresh token at once gives %v, want one 201 and %d 422", statuses, crowd-1)
	}
}

// ReferAtOnce asks for the token of one new reference many times at once: one
// subscriber is made.
func ReferAtOnce(t T, p *Project) {
	t.Helper()
	ids := make([]string, crowd)
	atOnce(func(i int) {
		a, err := p.TryPatiently("POST", "/api/fabric/subscribers/tokens", p.Basic(),
			JSON(map[string]string{"reference": "grace"}))
		if err != nil || a.Status != 200 {
			t.Errorf("token = %d %s, %v, want 200", a.Status, a.Body, err)
			return
		}
		var sat SAT
		if err := json.Unmarshal(a.Body, &sat); err != nil {
			t.Errorf("%v", err)
		}
		ids[i] = sat.SubscriberID
	})
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("one reference at once gave the subscribers %s and %s", ids[0], id)
		}
	}
}

// atOnce calls do as often as the crowd is large, all at once.
func atOnce(do func(i int)) {
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	wg.Wait()
}

// oneWins asks for tokens many times at once and gives what the one that got some
// was given. All others must have been refused.
func oneWins(t T, what string, ask func() (Tokens, error)) Tokens {
	t.Helper()
	var answers [crowd]Tokens
	var faults [crowd]error
	atOnce(func(i int) {
		Patiently(func() (int, error) {
			answers[i], faults[i] = ask()
			return 0, faults[i]
		})
	})
	var winners []Tokens
	for i, err := range faults {
		if err == nil {
			winners = append(winners, answers[i])
			continue
		}
		WantInvalidGrant(t, what)(answers[i], err)
	}
	if len(winners) != 1 {
		t.Fatalf("%s: %d of %d got tokens, want one", what, len(winners), crowd)
	}
	return winners[0]
}

// WantInvalidGrant returns a check of a token answer: that it is a refusal.
func WantInvalidGrant(t T, what string) func(Tokens, error) {
	t.Helper()
	return func(_ Tokens, err error) {
		t.Helper()
		var r *Refusal
		if !errors.As(err, &r) || r.Status != 400 || r.Code != "invalid_grant" {
			t.Errorf("%s: %v, want 400 invalid_grant", what, err)
		}
	}
}

// wantDead ends when the tokens have been refused.
func wantDead(t T, c *Client, tokens Tokens) {
	t.Helper()
	WithinASecond(t, "an access token of a grant that was replayed", func() error {
		return c.Get(t, "/subscriber/info", Bearer(tokens.AccessToken)).StatusIs(401)
	})
	WantInvalidGrant(t, "a refresh token of a grant that was replayed")(c.QuickRefresh(tokens.RefreshToken))
}
