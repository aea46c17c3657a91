package harness

import (
	"encoding/json"
	"errors"
	"sync"
)

// crowd is the number of concurrent requests.
const crowd = 64

// crowdScope is the scope of the logins whose tokens the concurrent requests use.
const crowdScope = "openid offline_access"

// RedeemAtOnce redeems one code many times concurrently. Exactly one request succeeds. Because the
// code was used more than once, the tokens from that request are then revoked.
func RedeemAtOnce(t T, p *Project) {
	t.Helper()
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	_, b := c.SignIn(t, p.NewSubscriber(t), crowdScope)

	for range 5 {
		f := c.NewFlow(crowdScope)
		code, err := f.QuickCode(b.Cookies())
		if err != nil {
			t.Fatalf("requesting a code: %v", err)
		}
		redeem := func() (Tokens, error) { return f.QuickRedeem(code) }
		wantRevoked(t, c, oneWins(t, "concurrent redemptions", redeem))
	}
}

// RefreshAtOnce uses one refresh token many times concurrently. All requests get the same new
// refresh token, which works. If the first token is used again after the second, all tokens of the
// login are revoked.
func RefreshAtOnce(t T, p *Project) {
	t.Helper()
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	sub, b := p.NewSubscriber(t), c.Browser()

	for range 5 {
		tokens := c.SignInWith(t, b, sub, crowdScope)

		var answers [crowd]Tokens
		AtOnce(crowd, func(i int) {
			var err error
			Patiently(func() (int, error) {
				answers[i], err = c.QuickRefresh(tokens.RefreshToken)
				return 0, err
			})
			if err != nil {
				t.Errorf("a concurrent refresh: %v", err)
			}
		})

		for _, a := range answers {
			if a.RefreshToken != answers[0].RefreshToken {
				t.Fatalf("concurrent uses of one refresh token returned different new tokens, want the same")
			}
		}

		next, err := c.QuickRefresh(answers[0].RefreshToken)
		if err != nil {
			t.Fatalf("using the refresh token that all callers got: %v", err)
		}

		// The second token has been used, so using the first one now is a replay.
		WantInvalidGrant(t, "the first refresh token, after the second was used")(c.QuickRefresh(tokens.RefreshToken))
		for _, revoked := range []Tokens{next, answers[0], answers[crowd-1]} {
			wantRevoked(t, c, revoked)
		}
	}
}

// RefreshFabricAtOnce uses the refresh token of one SAT many times concurrently. One request gets
// status 201, and all others get 422.
func RefreshFabricAtOnce(t T, p *Project) {
	t.Helper()
	sat := p.NewSAT(t, "ada")

	statuses := map[int]int{}
	var mu sync.Mutex
	AtOnce(crowd, func(int) {
		a, err := p.TryPatiently("POST", "/api/fabric/subscribers/tokens/refresh", p.Basic(),
			JSON(map[string]string{"refresh_token": sat.RefreshToken}))
		if err != nil {
			t.Errorf("a concurrent refresh: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		statuses[a.Status]++
	})

	if statuses[201] != 1 {
		t.Errorf("concurrent uses of one fabric refresh token returned 201 %d times, want once", statuses[201])
	}
	if statuses[422] != crowd-1 {
		t.Errorf("concurrent uses of one fabric refresh token returned 422 %d times, want %d times: %v",
			statuses[422], crowd-1, statuses)
	}
}

// ReferAtOnce requests a token for one new reference many times concurrently. Only one
// subscriber is created.
func ReferAtOnce(t T, p *Project) {
	t.Helper()
	ids := make([]string, crowd)
	AtOnce(crowd, func(i int) {
		a, err := p.TryPatiently("POST", "/api/fabric/subscribers/tokens", p.Basic(),
			JSON(map[string]string{"reference": "grace"}))
		if err != nil {
			t.Errorf("requesting a token: %v", err)
			return
		}
		if a.Status != 200 {
			t.Errorf("requesting a token returned %d %s, want 200", a.Status, a.Body)
			return
		}

		var sat SAT
		if err := json.Unmarshal(a.Body, &sat); err != nil {
			t.Errorf("the response with the token is %s: %v", a.Body, err)
			return
		}
		ids[i] = sat.SubscriberID
	})

	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("concurrent requests for one reference returned the subscribers %q and %q, want one",
				ids[0], id)
		}
	}
}

// AtOnce calls do concurrently with each number from 0 to n-1, and waits until all calls return.
func AtOnce(n int, do func(i int)) {
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	wg.Wait()
}

// oneWins requests tokens many times concurrently. It returns the tokens from the only request that
// succeeds. All other requests must be refused with invalid_grant.
func oneWins(t T, what string, ask func() (Tokens, error)) Tokens {
	t.Helper()
	var answers [crowd]Tokens
	var faults [crowd]error

	AtOnce(crowd, func(i int) {
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
		t.Fatalf("%s: %d of %d requests got tokens, want 1", what, len(winners), crowd)
	}
	return winners[0]
}

// WantInvalidGrant returns a function that checks that a token request was refused with 400
// invalid_grant.
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

// wantRevoked checks that the access token is refused within a second, and that the refresh token
// is refused.
func wantRevoked(t T, c *Client, tokens Tokens) {
	t.Helper()
	WithinASecond(t, "an access token of a grant that was replayed", func() error {
		return c.Get(t, "/subscriber/info", Bearer(tokens.AccessToken)).StatusIs(401)
	})
	WantInvalidGrant(t, "a refresh token of a grant that was replayed")(c.QuickRefresh(tokens.RefreshToken))
}
