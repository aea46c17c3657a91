package nodes

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/history"
)

const (
	crowd  = 64
	rounds = 4
)

// ask makes a request, records it in h, and returns its output. No node fails in these tests, so
// each answer must be tokens or invalid_grant.
func ask(t *testing.T, h *history.History, client int, in history.Use, do func() (harness.Tokens, error)) string {
	return h.Ask(client, in, func() (tokens harness.Tokens, err error) {
		harness.Patiently(func() (int, error) {
			tokens, err = do()
			return 0, err
		})
		if err == nil {
			return tokens, nil
		}

		var r *harness.Refusal
		if !errors.As(err, &r) || r.Code != "invalid_grant" {
			t.Errorf("using %+v returned %v, want tokens or invalid_grant", in, err)
		}
		return harness.Tokens{}, err
	})
}

// check fails the test unless there is an order of the uses that explains all answers from the two
// nodes.
func check(t *testing.T, h *history.History, what string) {
	t.Helper()
	if err := h.Check(history.Model{}); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestLinearRedemptions redeems one code many times at two nodes concurrently, and refreshes the
// resulting tokens. The answers must be possible for a single node that serves one request after
// the other.
func TestLinearRedemptions(t *testing.T) {
	p, c, cookies := startLinear(t)
	for range rounds {
		f := c.NewFlow("openid offline_access")
		code, err := f.QuickCode(cookies)
		if err != nil {
			t.Fatal(err)
		}
		redeem := func() (harness.Tokens, error) { return f.QuickRedeem(code) }
		h := history.New()
		harness.AtOnce(crowd, func(i int) {
			if got := ask(t, h, i, history.Use{}, redeem); got != history.Refused {
				ask(t, h, i, history.Use{Token: got}, func() (harness.Tokens, error) { return c.QuickRefresh(got) })
			}
		})
		check(t, h, "a code of project "+p.ID)
	}
}

// TestLinearRefreshes refreshes the tokens of one login many times at two nodes concurrently,
// usually with the newest known refresh token.
func TestLinearRefreshes(t *testing.T) {
	p, c, cookies := startLinear(t)
	for range rounds {
		f := c.NewFlow("openid offline_access")
		code, err := f.QuickCode(cookies)
		if err != nil {
			t.Fatal(err)
		}
		redeem := func() (harness.Tokens, error) { return f.QuickRedeem(code) }
		h := history.New()
		var mu sync.Mutex
		known := []string{ask(t, h, crowd, history.Use{}, redeem)}

		harness.AtOnce(crowd, func(i int) {
			for range 3 {
				mu.Lock()
				token := known[max(0, len(known)-1-int(rand.ExpFloat64()))]
				mu.Unlock()
				refresh := func() (harness.Tokens, error) { return c.QuickRefresh(token) }
				got := ask(t, h, i, history.Use{Token: token}, refresh)
				mu.Lock()
				if got != "" && got != known[len(known)-1] {
					known = append(known, got)
				}
				mu.Unlock()
			}
		})
		check(t, h, "a login of project "+p.ID)
	}
}

// startLinear starts two nodes. It returns a project, a client, and the cookies of a browser that
// is signed in.
func startLinear(t *testing.T) (*harness.Project, *harness.Client, harness.Option) {
	t.Helper()
	p := two(t).NewProject(t)
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	_, b := c.SignIn(t, p.NewSubscriber(t), "openid offline_access")
	return p, c, b.Cookies()
}
