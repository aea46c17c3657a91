package cluster

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A storm is many clients that want to sign in during an outage. After a refusal, each client waits
// for the time in Retry-After, and up to a second longer. The clients connect directly to the nodes
// and check only what they need, because they share the CPU with the nodes.
type storm struct {
	clients  int
	load     *load
	http     *http.Client
	work     sync.WaitGroup
	signedIn atomic.Int64
	refused  atomic.Int64 // number of refused attempts
	waiting  atomic.Int64 // number of clients that were refused at least once
}

// newStorm starts the clients. A client gives up if it cannot sign in for a long time.
func newStorm(l *load) *storm {
	s := &storm{clients: 200, load: l}
	if long() {
		s.clients = 5000
	}
	s.http = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: s.clients, DisableCompression: true},
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for i := range s.clients {
		node := l.front.Each[i%len(l.front.Each)]
		s.work.Go(func() { s.signIn(node.HTTP) })
	}
	return s
}

// signIn tries to sign in at a node until it succeeds, or the client gives up.
func (s *storm) signIn(node string) {
	deadline := time.Now().Add(5 * patience)
	for first := true; time.Now().Before(deadline); first = false {
		after, ok := s.try(node)
		if ok {
			s.signedIn.Add(1)
			return
		}
		s.refused.Add(1)
		if first {
			s.waiting.Add(1)
		}
		<-time.After(after + rand.N(time.Second))
	}
}

// try gets a code and redeems it. If it is refused, it returns the time to wait.
func (s *storm) try(node string) (after time.Duration, ok bool) {
	f := s.load.client.NewFlow(scope)
	resp, err := s.send("GET", node+"/login/oauth/authorize?"+f.Query.Encode(), s.load.cookies)
	if err != nil {
		return time.Second, false
	}
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Query().Get("code") == "" {
		return retryAfter(resp), false
	}

	form := f.Form(to.Query().Get("code"))
	resp, err = s.send("POST", node+"/oauth/token", s.load.client.Authenticated(form)...)
	if err != nil {
		return time.Second, false
	}
	return retryAfter(resp), resp.StatusCode == http.StatusOK
}

// send sends a request and reads the complete answer.
func (s *storm) send(method, to string, opts ...harness.Option) (*http.Response, error) {
	r, err := http.NewRequest(method, to, nil)
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(r)
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, err
}

// retryAfter returns how long an answer asks the client to wait. If the answer does not say this,
// retryAfter returns a second.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		return time.Second
	}
	return time.Duration(seconds) * time.Second
}

// waitBegin waits until every client has been refused at least once.
func (s *storm) waitBegin(t *testing.T) {
	t.Helper()
	harness.Eventually(t, patience, "all clients to be refused", func() error {
		if n := s.waiting.Load(); n < int64(s.clients) {
			return fmt.Errorf("%d of %d clients were refused", n, s.clients)
		}
		return nil
	})
}

// waitEnd waits until every client has signed in or given up. It fails the test if one has given
// up. In the long run before a release, half of the clients must sign in within 10 seconds. How
// long the other half takes depends on the CPU time that nodes, databases and clients need.
func (s *storm) waitEnd(t *testing.T, mended time.Time) {
	t.Helper()
	harness.Eventually(t, patience, "half of the clients to sign in", func() error {
		if n := s.signedIn.Load(); n < int64(s.clients/2) {
			return fmt.Errorf("%d of %d clients have signed in", n, s.clients)
		}
		return nil
	})
	half := time.Since(mended)

	s.work.Wait()
	t.Logf("%d clients signed in after %d refusals, half of them within %v, all within %v", s.signedIn.Load(),
		s.refused.Load(), half.Round(time.Millisecond), time.Since(mended).Round(time.Millisecond))
	if n := s.signedIn.Load(); n < int64(s.clients) {
		t.Errorf("%d of %d clients signed in after the outage", n, s.clients)
	}
	if long() && half > 10*time.Second {
		t.Errorf("half of the clients signed in within %v, want at most 10s", half)
	}
}
