package nodes

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// maxDearer is how many times the CPU time of one node two nodes may need for the same load.
const maxDearer = 1.1

// TestTwoNodesCost signs in, uses and refreshes tokens at one node, and then at two in turn. It
// compares the CPU time of both nodes, without what they need while nothing happens. The test runs
// with LONG=1, because it needs minutes, and a machine that does nothing else.
func TestTwoNodesCost(t *testing.T) {
	if os.Getenv("LONG") != "1" {
		t.Skip("LONG=1 compares CPU times")
	}
	rows(t)
	n := two(t)
	l := logIn(t, n)
	cookies := l.browser.Cookies()
	visit := func(node *harness.Server) error {
		c := l.at(node)
		flow := c.NewFlow(loginScope)
		code, err := flow.QuickCode(cookies)
		if err != nil {
			return err
		}
		tokens, err := flow.QuickRedeem(code)
		if err != nil {
			return err
		}
		if tokens, err = c.QuickRefresh(tokens.RefreshToken); err != nil {
			return err
		}
		a, err := node.Try("GET", "/oauth/userinfo", harness.Bearer(tokens.AccessToken))
		if err != nil {
			return err
		}
		return a.StatusIs(200)
	}

	atOne := func(int) error { return visit(n.Each[0]) }
	atBoth := func(i int) error { return visit(n.Each[i%2]) }

	const rounds, visits = 8, 1000
	var ratios []float64
	for round := range rounds {
		idle := idleShare(n)

		// Each other round begins with both nodes, because the first load of a round costs less.
		var one, both time.Duration
		if round%2 == 0 {
			one = costOf(t, n, idle, visits, atOne)
			both = costOf(t, n, idle, visits, atBoth)
		} else {
			both = costOf(t, n, idle, visits, atBoth)
			one = costOf(t, n, idle, visits, atOne)
		}
		t.Logf("idle %.3f cores; a visit costs %v at one node, %v at two", idle, one, both)
		ratios = append(ratios, float64(both)/float64(one))
	}
	slices.Sort(ratios)
	if median := (ratios[rounds/2-1] + ratios[rounds/2]) / 2; median > maxDearer {
		t.Errorf("two nodes need %.2f times the CPU time of one (%.2f), want at most %.2f", median, ratios, maxDearer)
	}
}

// idleShare returns how many cores the nodes use while nothing happens.
func idleShare(n *harness.Nodes) float64 {
	const long = 10 * time.Second
	before := cpuOf(n)
	<-time.After(long)
	return float64(cpuOf(n)-before) / float64(long)
}

// costOf makes visits at the same time, and returns the CPU time of each.
func costOf(t *testing.T, n *harness.Nodes, idle float64, visits int, visit func(i int) error) time.Duration {
	t.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	before, began := cpuOf(n), time.Now()
	for range 32 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(visits); i = next.Add(1) {
				if err := visit(int(i)); err != nil {
					t.Errorf("visit %d: %v", i, err)
				}
			}
		})
	}
	workers.Wait()
	background := time.Duration(idle * float64(time.Since(began)))
	return (cpuOf(n) - before - background) / time.Duration(visits)
}

func cpuOf(n *harness.Nodes) (total time.Duration) {
	for _, node := range n.Each {
		total += harness.CPU(node.PID())
	}
	return total
}
