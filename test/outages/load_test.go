package outages

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// recovery limits how long a server may take to recover after a fault.
const recovery = time.Minute

// often is the interval at which a client begins a login. Without a pause, clients would use all
// CPU time during an outage, and would not find more faults.
const often = 40 * time.Millisecond

// clients runs clients that request codes, redeem them and refresh the tokens during a fault. It
// records the responses that violate the protocol.
type clients struct {
	t       *testing.T
	client  *harness.Client
	cookies harness.Option
	done    atomic.Int64 // operations that succeeded
	stop    atomic.Bool
	wg      sync.WaitGroup

	mu     sync.Mutex
	chains []*chain
	failed []string // responses that violate the protocol
}

// A chain is a login and its acknowledged refresh tokens.
type chain struct {
	flow      *harness.Flow
	code      string
	newest    string // the refresh token received last
	used      string // the refresh token that was exchanged for newest; "" if there is none
	uncertain bool   // the last exchange failed, but may have taken effect
}

// loadClients starts clients of a server and waits until their operations succeed.
func loadClients(t *testing.T, s *harness.Server) *clients {
	t.Helper()
	p := s.NewProject(t)
	c := &clients{t: t, client: p.NewClient(t, "web", "--first-party", "--id-token-alg", "ES256")}
	_, b := c.client.SignIn(t, p.NewSubscriber(t), "openid offline_access")
	c.cookies = b.Cookies()
	for range 2 {
		c.wg.Go(func() {
			next := time.NewTicker(often)
			defer next.Stop()
			for !c.stop.Load() {
				c.logIn()
				<-next.C
			}
		})
	}
	c.working(t)
	return c
}

// working waits until operations succeed again, and ends the test if they do not.
func (c *clients) working(t *testing.T) {
	t.Helper()
	const some = 20
	want := c.done.Load() + some
	harness.Eventually(t, recovery, "operations to succeed", func() error {
		if n := c.done.Load(); n < want {
			return fmt.Errorf("%d operations have not succeeded yet", want-n)
		}
		return nil
	})
}

// logIn creates a chain: it gets a code, redeems it and refreshes the tokens a few times.
func (c *clients) logIn() {
	f := c.client.NewFlow("openid offline_access")
	a, ok := c.ask("GET", "/login/oauth/authorize?"+f.Query.Encode(), c.cookies)
	if !ok {
		return
	}

	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil || to.Query().Get("code") == "" {
		return // redirected to a new login, or temporarily unavailable
	}
	c.done.Add(1)

	l := &chain{flow: f, code: to.Query().Get("code")}
	tokens, ok := c.token(f.Form(l.code))
	if !ok {
		return // the code may already be redeemed, or the login must start again
	}

	l.newest = tokens.RefreshToken
	c.mu.Lock()
	c.chains = append(c.chains, l)
	c.mu.Unlock()

	for range 3 {
		tokens, ok := c.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.newest}})
		if !ok {
			l.uncertain = true
			return
		}
		l.used, l.newest = l.newest, tokens.RefreshToken
	}
}

func (c *clients) token(form url.Values) (tokens harness.Tokens, ok bool) {
	a, ok := c.ask("POST", "/oauth/token", c.client.Authenticated(form)...)
	ok = ok && a.Status == http.StatusOK && json.Unmarshal(a.Body, &tokens) == nil
	if ok {
		c.done.Add(1)
	}
	return tokens, ok
}

// ask sends a request. The only acceptable responses are a success, a 503 with Retry-After, and the
// error for a lost code. Any other response is a fault of the server.
func (c *clients) ask(method, path string, opts ...harness.Option) (harness.Answer, bool) {
	a, err := c.client.Try(method, path, opts...)
	if err != nil {
		return a, false
	}
	switch {
	case a.Status < 400: // including a redirect with an error that asks the client to try again later
		return a, true
	case a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
	case a.Status == http.StatusBadRequest &&
		strings.Contains(string(a.Body), codeGone): // a login in progress starts again
	default:
		c.mu.Lock()
		c.failed = append(c.failed, method+" "+a.Header.Get("X-Request-Id")+": "+
			http.StatusText(a.Status)+" "+string(a.Body))
		c.mu.Unlock()
	}
	return a, false
}

// codeGone is the error for a code that the session store lost.
const codeGone = "the code is not valid or has expired"

// check ends the load, and checks that no acknowledged refresh token is lost and that no used code
// or token is valid again.
func (c *clients) check(t *testing.T) {
	t.Helper()
	c.stop.Store(true)
	c.wg.Wait()

	for i, f := range c.failed {
		if i < 5 {
			t.Errorf("an answer violates the protocol: %s", f)
		}
	}
	if len(c.failed) > 5 {
		t.Errorf("%d more answers violate the protocol", len(c.failed)-5)
	}

	rand.Shuffle(len(c.chains), func(i, j int) { c.chains[i], c.chains[j] = c.chains[j], c.chains[i] })
	for _, l := range c.chains[:min(len(c.chains), checked())] {
		if _, err := c.client.QuickRefresh(l.newest); err != nil && !l.uncertain {
			t.Errorf("an acknowledged refresh token was lost: %v", err)
		}
		if l.used != "" {
			harness.WantInvalidGrant(t, "a used refresh token")(c.client.QuickRefresh(l.used))
		}
		harness.WantInvalidGrant(t, "a redeemed code")(l.flow.QuickRedeem(l.code))
	}

	if len(c.chains) == 0 {
		t.Error("no login succeeded")
	}
}
