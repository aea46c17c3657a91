package outages

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// An outage is a temporary fault of Redis. open starts Redis and returns its URL, and the functions
// that begin and end the fault.
type outage struct {
	name string
	open func(t *testing.T) (url string, begin, end func())
}

// single returns an outage of a Redis that is a single server.
func single(name string, begin, end func(t *testing.T, r *servers.RedisServer)) outage {
	return outage{name, func(t *testing.T) (string, func(), func()) {
		r := servers.OwnRedis(t)
		return r.URL, func() { begin(t, r) }, func() { end(t, r) }
	}}
}

func tell(command ...string) func(*testing.T, *servers.RedisServer) {
	return func(t *testing.T, r *servers.RedisServer) { r.CLI(t, command...) }
}

var (
	kill  = func(t *testing.T, r *servers.RedisServer) { r.Kill(t) }
	start = func(t *testing.T, r *servers.RedisServer) { r.Start(t) }
)

var outages = []outage{
	single("F03 dead", kill, start),
	{"F04 a master of a cluster is dead, and its replica follows", func(t *testing.T) (string, func(), func()) {
		c := servers.OwnCluster(t, 1)
		return c.URL, func() { c.Nodes[0].Kill(t) }, func() {}
	}},
	single("F05 halted", func(t *testing.T, r *servers.RedisServer) { r.Pause(t) },
		func(t *testing.T, r *servers.RedisServer) { r.Resume(t) }),
	single("F05 slow", tell("CLIENT", "PAUSE", "20000", "ALL"), func(*testing.T, *servers.RedisServer) {}),
	single("F06 full", tell("CONFIG", "SET", "maxmemory", "1mb"), tell("CONFIG", "SET", "maxmemory", "0")),
	single("F08 read-only", tell("REPLICAOF", "127.0.0.1", "1"), tell("REPLICAOF", "NO", "ONE")),
	single("F09 dead, then empty", kill, func(t *testing.T, r *servers.RedisServer) { r.StartEmpty(t) }),
	{"F10 a halted master returns after a failover", func(t *testing.T) (string, func(), func()) {
		s := servers.OwnSentinel(t)
		return s.URL, func() { s.Master.Pause(t) }, func() {
			harness.Eventually(t, recovers, "a new master", func() error {
				if role, err := s.Replica.TryCLI("ROLE"); err != nil || !strings.HasPrefix(role, "master") {
					return fmt.Errorf("ROLE = %s, %v, want master", role, err)
				}
				return nil
			})
			s.Master.Resume(t)
		}
	}},
}

// These constants bound the effects of an outage.
const (
	slowest  = 10 * time.Second // the longest time that a login may take during the outage
	recovers = time.Minute      // the longest time until Redis is no longer used, or is used again
)

// TestRedisOutage makes Redis fail under load. Nobody is signed out by the fault, and people can
// still sign in. A logout during the outage takes effect within a second and remains in effect.
func TestRedisOutage(t *testing.T) {
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			url, begin, end := o.open(t)
			s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_SESSIONS=" + url}})
			c := s.NewProject(t).NewClient(
				t, "web", "--first-party", "--id-token-alg", "ES256", "--post-logout-redirect-uri", goodbye)
			survive(t, c, begin, end)
		})
	}
}

const goodbye = "https://rp.example/bye"

func survive(t *testing.T, c *harness.Client, begin, end func()) {
	const scope = "openid offline_access"
	sub := c.NewSubscriber(t)
	tokens, stays := c.SignIn(t, sub, scope)
	before, leaves := c.SignIn(t, sub, scope)
	copied := leaves.Cookies()

	begin()
	load := newLoad(c, stays.Cookies())
	harness.Eventually(t, recovers, "the breaker to open", func() error { return checkFallback(t, c, "1") })
	load.noticed()

	signOut(t, c, leaves, before)

	fresh, _ := c.SignIn(t, sub, scope)
	flow := c.NewFlow(scope)
	code, err := flow.QuickCode(stays.Cookies())
	if err != nil {
		t.Errorf("requesting a code during the outage: %v", err)
	}

	refreshed, err := c.QuickRefresh(tokens.RefreshToken)
	if err != nil {
		t.Errorf("refreshing tokens during the outage: %v", err)
	}

	load.waitMore(t, 200)

	end()
	harness.Eventually(t, recovers, "the breaker to close", func() error { return checkFallback(t, c, "0") })
	load.waitMore(t, 50)
	load.end(t)

	if _, err := flow.QuickRedeem(code); err != nil {
		t.Errorf("after the outage, redeeming a code issued during it: %v", err)
	}
	for _, token := range []string{fresh.RefreshToken, refreshed.RefreshToken} {
		if _, err := c.QuickRefresh(token); err != nil {
			t.Errorf("after the outage, using a refresh token issued during it: %v", err)
		}
	}
	for range 3 {
		if _, err := c.NewFlow(scope).QuickCode(copied); err == nil {
			t.Error("after the outage, a browser that was signed out during it is signed in again")
		}
		harness.WantInvalidGrant(t, "a redeemed code")(flow.QuickRedeem(code))
	}
}

// checkFallback returns an error unless the server's metric for the session fallback has this
// value.
func checkFallback(t *testing.T, c *harness.Client, want string) error {
	t.Helper()
	page := string(c.Get(t, c.Ops+"/metrics").Body)
	if !strings.Contains(page, "\nselvage_session_fallback "+want+"\n") {
		return fmt.Errorf("selvage_session_fallback is not %s", want)
	}
	return nil
}

// signOut ends a browser's login, and checks that its token is invalid within a second.
func signOut(t *testing.T, c *harness.Client, b *harness.Browser, tokens harness.Tokens) {
	t.Helper()
	b.Open(t, "/oauth/logout?id_token_hint="+tokens.IDToken+"&post_logout_redirect_uri="+goodbye).Callback(t)
	harness.WithinASecond(t, "the token of the ended login", func() error {
		return c.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).StatusIs(401)
	})
	if _, err := c.QuickRefresh(tokens.RefreshToken); err == nil {
		t.Error("the refresh token of the ended login is accepted")
	}
}

// A load signs in with the same browser repeatedly.
type load struct {
	began time.Time
	stop  chan struct{}
	work  sync.WaitGroup

	mu     sync.Mutex
	from   time.Time // when the server noticed the outage; earlier logins may fail
	done   int
	failed []string // failures of logins that began later than that
}

func newLoad(c *harness.Client, cookies harness.Option) *load {
	l := &load{began: time.Now(), stop: make(chan struct{})}
	for range 4 {
		l.work.Go(func() {
			next := time.NewTicker(often)
			defer next.Stop()
			for {
				select {
				case <-l.stop:
					return
				case <-next.C:
					l.signIn(c, cookies)
				}
			}
		})
	}
	return l
}

func (l *load) signIn(c *harness.Client, cookies harness.Option) {
	began, f := time.Now(), c.NewFlow("openid offline_access")
	code, err := f.QuickCode(cookies)
	if err == nil {
		_, err = f.QuickRedeem(code)
	}
	took := time.Since(began)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	switch at := began.Sub(l.from); {
	case l.from.IsZero() || at < 0:
	case err != nil:
		l.failed = append(l.failed, fmt.Sprintf("after %v: %v", at, err))
	case took > slowest:
		l.failed = append(l.failed, fmt.Sprintf("after %v: it took %v", at, took))
	}
}

// noticed records that the server has noticed the outage. From now on, the outage must not affect
// logins.
func (l *load) noticed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = time.Now()
}

// waitMore waits until this many more logins have ended, whether or not they succeeded.
func (l *load) waitMore(t *testing.T, more int) {
	t.Helper()
	done := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.done
	}

	until := done() + more
	harness.Eventually(t, 2*time.Minute, "logins", func() error {
		if n := done(); n < until {
			return fmt.Errorf("only %d of %d logins have ended", n, until)
		}
		return nil
	})
}

func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.work.Wait()
	t.Logf("%d logins in %v", l.done, time.Since(l.began))
	if len(l.failed) > 0 {
		t.Errorf("%d of %d logins failed or were slow, the first %s", len(l.failed), l.done, l.failed[0])
	}
}

// TestF07RedisEvicting lets Redis evict entries at random. A signed-in browser remains signed in,
// and a signed-out browser remains signed out.
func TestF07RedisEvicting(t *testing.T) {
	r := servers.OwnRedis(t, "--maxmemory", "2mb", "--maxmemory-policy", "allkeys-random")
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_SESSIONS=" + r.URL}})
	c := s.NewProject(t).NewClient(t, "web", "--first-party", "--post-logout-redirect-uri", goodbye)
	sub := c.NewSubscriber(t)
	_, stays := c.SignIn(t, sub, "openid offline_access")
	tokens, leaves := c.SignIn(t, sub, "openid offline_access")
	copied := leaves.Cookies()
	signOut(t, c, leaves, tokens)

	for i := range 30 {
		r.CLI(t, "EVAL", "for i = 1, 100 do "+
			"redis.call('SET', 'filler:'..ARGV[1]..':'..i, string.rep('x', 4096)) end", "0", fmt.Sprint(i))

		if _, err := c.NewFlow("openid").QuickCode(stays.Cookies()); err != nil {
			t.Errorf("a signed-in browser was signed out: %v", err)
		}
		if _, err := c.NewFlow("openid").QuickCode(copied); err == nil {
			t.Error("a signed-out browser is signed in again")
		}
	}

	if n := r.CLI(t, "INFO", "stats"); !strings.Contains(n, "evicted_keys:") ||
		strings.Contains(n, "evicted_keys:0\r") {
		t.Error("nothing was evicted")
	}
	harness.Eventually(t, recovers, "Redis to be used", func() error { return checkFallback(t, c, "0") })
}
