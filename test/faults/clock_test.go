package faults

import (
	"strconv"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestClockJumps sets the clock of a server forward and back. Tokens expire by the new time. A
// token that was issued in the future is refused. No token remains valid for longer than its
// lifetime, counted from the latest time that the clock has shown. Refresh tokens still work.
func TestClockJumps(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.Start(t)
	clock := s.Clock(t)
	p := s.NewProject(t)
	c := p.NewClient(t, "spa", "--first-party", "--access-token", "jwt", "--id-token-alg", "ES256")
	sub := p.NewSubscriber(t)

	// An issue is a JWT that is valid for 15 minutes, a fabric token for 2 hours, and a refresh token.
	type issue struct{ jwt, sat, refresh string }
	newIssue := func() issue {
		tokens, _ := c.SignIn(t, sub, "openid offline_access")
		return issue{
			jwt:     tokens.AccessToken,
			sat:     p.NewSAT(t, "ada").Token,
			refresh: tokens.RefreshToken,
		}
	}
	want := func(when string, i issue, jwt, sat int) {
		t.Helper()
		if err := s.Get(t, "/oauth/userinfo", harness.Bearer(i.jwt)).StatusIs(jwt); err != nil {
			t.Errorf("a JWT %s: %v", when, err)
		}
		if err := s.Get(t, "/subscriber/info", harness.Bearer(i.sat)).StatusIs(sat); err != nil {
			t.Errorf("a fabric token %s: %v", when, err)
		}
	}

	for _, tt := range []struct {
		jump               time.Duration
		oldJWT, oldSAT     int // statuses of tokens from before the jump
		laterJWT, laterSAT int // statuses of tokens from after the jump, once the clock is right again
	}{
		{30 * time.Second, 200, 200, 200, 200},
		{-30 * time.Second, 200, 200, 200, 200},
		{10 * time.Minute, 200, 200, 401, 401},
		{-10 * time.Minute, 401, 401, 200, 200},
		{time.Hour, 401, 200, 401, 401},
		{-time.Hour, 401, 401, 401, 200},
	} {
		clock.Set(0)
		old := newIssue()
		clock.Set(tt.jump)
		want("that was issued before a jump by "+tt.jump.String(), old, tt.oldJWT, tt.oldSAT)
		if _, err := c.QuickRefresh(old.refresh); err != nil {
			t.Errorf("a refresh token from before a jump by %v: %v", tt.jump, err)
		}

		later := newIssue()
		clock.Set(0)
		want("that was issued after a jump by "+tt.jump.String(), later, tt.laterJWT, tt.laterSAT)
		clock.Set(max(tt.jump, 0) + 2*time.Hour + time.Minute)
		want("that was issued before a jump by "+tt.jump.String()+" and has expired", old, 401, 401)
		want("that was issued after a jump by "+tt.jump.String()+" and has expired", later, 401, 401)
	}
}

// TestClockJumpsLimits uses up a rate limit while the clock is an hour ahead. After each jump back,
// the limit permits one more guess, and the time to wait is no longer than usual.
func TestClockJumpsLimits(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_LIMITS__LOGIN_PER_ACCOUNT=3"}})
	clock := s.Clock(t)
	c := s.NewProject(t).NewClient(t, "spa", "--first-party")
	sub := c.NewSubscriber(t)
	guess := func() harness.Page {
		b := c.Browser()
		page := b.Open(t, c.NewFlow("openid").URL())
		return b.Submit(t, page, "login-submit",
			map[string]string{"username": sub.Email, "password": "fathom-lantern"})
	}

	const interval = 15 * time.Minute
	for _, offset := range []time.Duration{time.Hour, 0, -time.Hour} {
		clock.Set(offset)
		guesses := 1
		if offset == time.Hour {
			guesses = 3
		}
		for range guesses {
			if page := guess(); page.Status == 429 {
				t.Errorf("with the clock off by %v, a guess was refused with Retry-After %q", offset,
					page.Header.Get("Retry-After"))
			}
		}

		page := guess()
		wait, err := strconv.Atoi(page.Header.Get("Retry-After"))
		if page.Status != 429 || err != nil || time.Duration(wait)*time.Second > interval {
			t.Errorf("a guess too many at the offset %v returned %d with Retry-After %q, want 429 with at most %v",
				offset, page.Status, page.Header.Get("Retry-After"), interval)
		}
	}
}
