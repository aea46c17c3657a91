package cluster

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// restartNodes restarts each node in turn while requests arrive at a steady rate. All requests must
// succeed.
func (c *Cluster) restartNodes(t *testing.T) {
	rate, turns := 100, 1 // rate is in requests per second
	if long() {
		rate, turns = 500, 10
	}

	r := startLoad(t, c, rate)
	for range turns {
		for _, node := range c.Each {
			if err := node.Stop(t); err != nil {
				t.Errorf("stopping a node: %v", err)
			}
			node.Restart(t)
			harness.Eventually(t, patience, "the node to be ready", func() error {
				a, err := node.TryURL("GET", node.Ops+"/readyz")
				return errors.Join(err, a.StatusIs(http.StatusOK))
			})
		}
	}
	r.end(t)
}

// A steadyLoad sends requests to a cluster at a steady rate, even while earlier requests are
// unanswered.
type steadyLoad struct {
	stop chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex
	sent   int
	failed []error
}

func startLoad(t *testing.T, c *Cluster, rate int) *steadyLoad {
	t.Helper()
	p := c.NewProject(t)
	client := p.NewClient(t, "web", "--first-party", "--access-token", "fabric")
	tokens, b := client.SignIn(t, p.NewSubscriber(t), scope)
	kinds := []func() error{
		func() error { return checkOK(c.Try("GET", "/subscriber/info", harness.Bearer(tokens.AccessToken))) },
		func() error { return checkOK(c.Try("GET", "/api/fabric/resources", p.Basic())) },
		func() error {
			f := client.NewFlow(scope)
			code, err := f.QuickCode(b.Cookies())
			if err == nil {
				_, err = f.QuickRedeem(code)
			}
			return err
		},
	}

	r := &steadyLoad{stop: make(chan struct{})}
	r.work.Go(func() {
		next := time.NewTicker(time.Second / time.Duration(rate))
		defer next.Stop()
		for n := 0; ; n++ {
			r.work.Go(func() { r.record(kinds[n%len(kinds)]()) })
			select {
			case <-r.stop:
				return
			case <-next.C:
			}
		}
	})
	return r
}

// checkOK returns an error unless the answer has status 200.
func checkOK(a harness.Answer, err error) error {
	if err != nil {
		return err
	}
	return a.StatusIs(http.StatusOK)
}

func (r *steadyLoad) record(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent++; err != nil {
		r.failed = append(r.failed, err)
	}
}

// end stops the load, and fails the test if a request failed.
func (r *steadyLoad) end(t *testing.T) {
	t.Helper()
	close(r.stop)
	r.work.Wait()
	t.Logf("%d requests", r.sent)
	if len(r.failed) > 0 {
		t.Errorf("%d of %d requests failed, the first with: %v", len(r.failed), r.sent, r.failed[0])
	}
	if r.sent == 0 {
		t.Error("no request was sent")
	}
}
