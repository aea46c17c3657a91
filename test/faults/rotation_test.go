package faults

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// These constants describe the load during the rotation of keys.
const (
	verifications = 200             // per second
	longRate      = 500             // per second, with LONG=1
	verifiers     = 10              // clients that send the requests
	turnEvery     = 8 * time.Second // more than twice the time after which a new key may be used
)

// TestRotationUnderLoad rotates all keys with a command every few seconds, while clients verify
// tokens of the current keys and of earlier keys. No token is refused. LONG=1 runs the test for two
// minutes, at more than twice the rate.
func TestRotationUnderLoad(t *testing.T) {
	harness.Rows(t)
	harness.OneBackend(t)
	t.Parallel()
	publish := "SELVAGE_KEYS__PUBLISH=2s"
	s := harness.StartConfig(t, harness.Config{Env: []string{publish}})
	// The command checks that the next key has been published for this long.
	s.Backends = append(s.Backends, publish)
	l := newVerifications(t, s.NewProject(t))

	turns, rate := 4, verifications
	if os.Getenv("LONG") == "1" {
		turns, rate = 15, longRate
	}

	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range verifiers {
		wg.Go(func() { l.run(ctx, rate) })
	}

	began, tick := time.Now(), time.NewTicker(turnEvery)
	defer tick.Stop()
	for range turns {
		<-tick.C
		harness.Eventually(t, time.Minute, "the next key to be known everywhere", func() error {
			out, err := s.TryCommand("ring", "rotate")
			if err != nil {
				return fmt.Errorf("ring rotate: %w\n%s", err, out)
			}
			return nil
		})
		l.addTokens()
	}

	stop()
	wg.Wait()
	took := time.Since(began)
	t.Logf("%d verifications in %v, %.0f a second, during %d rotations", l.count.Load(), took,
		float64(l.count.Load())/took.Seconds(), turns)
	if l.count.Load() == 0 || len(l.tokens) != 2*(turns+1) {
		t.Errorf("%d tokens were verified %d times, want %d tokens, verified at least once", len(l.tokens),
			l.count.Load(), 2*(turns+1))
	}
}

// A load verifies tokens: signed tokens at the userinfo endpoint, and sealed tokens at the fabric
// API.
type load struct {
	t       *testing.T
	project *harness.Project
	client  *harness.Client
	cookies harness.Option
	count   atomic.Int64

	mu     sync.Mutex
	tokens []verification
}

// A verification is a token and a path that accepts it.
type verification struct{ path, token string }

func newVerifications(t *testing.T, p *harness.Project) *load {
	t.Helper()
	l := &load{t: t, project: p, client: p.NewClient(t, "spa", "--first-party", "--access-token", "jwt")}
	_, b := l.client.SignIn(t, p.NewSubscriber(t), "openid")
	l.cookies = b.Cookies()
	l.addTokens()
	return l
}

// addTokens adds two tokens of the current keys: one signed and one sealed.
func (l *load) addTokens() {
	l.t.Helper()
	f := l.client.NewFlow("openid")
	code, err := f.QuickCode(l.cookies)
	if err != nil {
		l.t.Fatal(err)
	}
	tokens, err := f.QuickRedeem(code)
	if err != nil {
		l.t.Fatal(err)
	}
	sat := l.project.NewSAT(l.t, "ada").Token

	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = append(l.tokens, verification{"/oauth/userinfo", tokens.AccessToken},
		verification{"/subscriber/info", sat})
}

// run verifies one token after another, at its share of the rate, until ctx is done.
func (l *load) run(ctx context.Context, rate int) {
	tick := time.NewTicker(verifiers * time.Second / time.Duration(rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		n := l.count.Add(1)
		l.mu.Lock()
		next := l.tokens[int(n)%len(l.tokens)]
		l.mu.Unlock()

		a, err := l.project.Try("GET", next.path, harness.Bearer(next.token))
		if err == nil {
			err = a.StatusIs(200)
		}
		if err != nil {
			l.t.Errorf("using a valid token: %v", err)
			return
		}
	}
}
