package cluster

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A storm is many clients that want to sign in during an outage. Each tries again about a second
// after each refusal, as Retry-After requests.
type storm struct {
	clients int
	work    sync.WaitGroup
	refused atomic.Int64 // number of refused attempts
	waiting atomic.Int64 // number of clients that were refused at least once
	failed  atomic.Int64 // number of clients that gave up
}

// newStorm starts the clients. They give up after a while.
func newStorm(l *load) *storm {
	s := &storm{clients: 200}
	if long() {
		s.clients = 5000
	}
	for range s.clients {
		s.work.Go(func() {
			if !s.signIn(l) {
				s.failed.Add(1)
			}
		})
	}
	return s
}

// signIn tries to sign in until it succeeds, and reports whether it has.
func (s *storm) signIn(l *load) bool {
	deadline := time.Now().Add(5 * patience)
	for first := true; time.Now().Before(deadline); first = false {
		f := l.client.NewFlow(scope)
		code, err := f.QuickCode(l.cookies)
		if err == nil {
			_, err = f.QuickRedeem(code)
		}
		if err == nil {
			return true
		}
		s.refused.Add(1)
		if first {
			s.waiting.Add(1)
		}
		<-time.After(time.Second + rand.N(time.Second))
	}
	return false
}

// begins waits until every client was refused.
func (s *storm) begins(t *testing.T) {
	t.Helper()
	harness.Eventually(t, patience, "all clients to be refused", func() error {
		if n := s.waiting.Load(); n < int64(s.clients) {
			return fmt.Errorf("%d of %d were", n, s.clients)
		}
		return nil
	})
}

// ends waits until every client has signed in.
func (s *storm) ends(t *testing.T) {
	t.Helper()
	began := time.Now()
	s.work.Wait()
	t.Logf("%d clients signed in after %d refusals, the last %v later", s.clients, s.refused.Load(),
		time.Since(began).Round(time.Millisecond))
	if n := s.failed.Load(); n > 0 {
		t.Errorf("%d of %d clients could not sign in after the outage", n, s.clients)
	}
}
