package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// These are the disturbances of a link; see the toxics of github.com/Shopify/toxiproxy.
const (
	slow = `{"type": "latency", "attributes": {"latency": 800, "jitter": 400}}`
	cut  = `{"type": "reset_peer", "attributes": {"timeout": 0}}`
	// Bytes are lost, but connections stay open.
	halfOpen = `{"type": "timeout", "attributes": {"timeout": 0}}`
	// Each connection ends after this many bytes of responses.
	truncated = `{"type": "limit_data", "attributes": {"bytes": 20000}}`
)

// A disturbance is a fault of the network between nodes and one of their servers.
type disturbance struct {
	what    string
	of      *link
	toxic   string
	noticed func()
	without []kind // operations that succeed during the disturbance, because they work without the server
	storm   bool   // many clients wait for the end of the disturbance
	long    bool   // tested only in a long run
}

// TestLinks disturbs the network between two nodes and their servers: it makes the network slow,
// cuts connections, and loses bytes. No acknowledged change is lost, and everything recovers by
// itself.
func TestLinks(t *testing.T) {
	t.Parallel()
	rows, postgres := via(t, servers.Postgres(t))
	sessions, redis := via(t, servers.Redis(t))
	store, bucket := servers.S3(t)
	config := harness.Config{Backends: []string{"SELVAGE_DATABASE=" + rows, "SELVAGE_SESSIONS=" + sessions}}
	endpoint, objects := via(t, store.Endpoint)
	for name, value := range store.Env(bucket) {
		config.Env = append(config.Env, name+"="+strings.ReplaceAll(value, store.Endpoint, endpoint))
	}
	n := harness.StartNodes(t, nil, config, config)
	n.Balance(t)
	l := newLoad(t, n)

	onFallback := func() { waitFallback(t, n, "1") }
	notReady := func() { waitUnready(t, n) }
	failing := func(k kind) func() { return func() { l.waitFailure(k) } }
	nothing := func() {}
	for _, d := range []disturbance{
		{what: "Redis is slow", of: redis, toxic: slow, noticed: onFallback, without: every},
		{what: "Redis is cut off", of: redis, toxic: cut, noticed: onFallback, without: every, long: true},
		{what: "Redis does not answer", of: redis, toxic: halfOpen, noticed: onFallback, without: every},
		{what: "PostgreSQL is cut off", of: postgres, toxic: cut, noticed: notReady, storm: true},
		{what: "PostgreSQL does not answer", of: postgres, toxic: halfOpen, noticed: notReady},
		{
			what:    "answers of PostgreSQL are lost",
			of:      postgres,
			toxic:   truncated,
			noticed: failing(changes),
			without: []kind{logins, changes},
		},
		{what: "the object store is slow", of: objects, toxic: slow, noticed: nothing, without: every, long: true},
		{
			what:    "the object store is cut off",
			of:      objects,
			toxic:   cut,
			noticed: failing(uploads),
			without: []kind{logins, changes},
		},
		{
			what:    "the object store does not answer",
			of:      objects,
			toxic:   halfOpen,
			noticed: failing(downloads),
			without: []kind{logins},
		},
		{
			what:    "objects are truncated",
			of:      objects,
			toxic:   truncated,
			noticed: nothing,
			without: []kind{logins, changes},
		},
	} {
		if d.long && !long() {
			continue
		}
		t.Log(d.what)
		d.of.disturb(d.toxic)
		d.noticed()
		l.waitSuccess(d.without...)
		if d.of == redis && d.toxic == slow {
			l.timeLogins()
		}

		var waiting *storm
		if d.storm {
			waiting = newStorm(l)
			waiting.waitBegin(t)
		}

		began := time.Now()
		d.of.mend()
		if d.storm {
			waiting.waitEnd(t, began)
			began = time.Now()
		}
		waitFallback(t, n, "0")
		l.waitSuccess(every...)
		within(t, "after "+d.what, time.Since(began), 10*time.Second)
	}
	l.end()
}

// waitFallback waits until all nodes keep sessions in the database (want is "1") or in Redis ("0").
func waitFallback(t *testing.T, n *harness.Nodes, want string) {
	t.Helper()
	for _, node := range n.Each {
		harness.Eventually(t, patience, "selvage_session_fallback to be "+want, func() error {
			a, err := node.TryURL("GET", node.Ops+"/metrics")
			if err == nil && !strings.Contains(string(a.Body), "\nselvage_session_fallback "+want+"\n") {
				err = fmt.Errorf("selvage_session_fallback is not %s", want)
			}
			return err
		})
	}
}

// waitUnready waits until no node is ready.
func waitUnready(t *testing.T, n *harness.Nodes) {
	t.Helper()
	for _, node := range n.Each {
		harness.Eventually(t, patience, "a node to report that it is not ready", func() error {
			a, err := node.TryURL("GET", node.Ops+"/readyz")
			if err != nil {
				return err
			}
			return a.StatusIs(503)
		})
	}
}

// timeLogins measures logins while Redis is slow. In a long run, it checks their 99th percentile.
func (l *load) timeLogins() {
	l.t.Helper()
	const bound = 1500 * time.Millisecond
	n := 40
	if long() {
		n = 400
	}

	times := make([]time.Duration, n)
	var work sync.WaitGroup
	for client := range 4 {
		work.Go(func() {
			for i := client; i < n; i += 4 {
				began, f := time.Now(), l.client.NewFlow(scope)
				code, err := f.QuickCode(l.cookies)
				if err == nil {
					_, err = f.QuickRedeem(code)
				}
				if times[i] = time.Since(began); err != nil {
					l.t.Errorf("a login while Redis is slow: %v", err)
				}
			}
		})
	}
	work.Wait()

	slices.Sort(times)
	p99 := times[n*99/100]
	l.t.Logf("99 %% of the logins take at most %v", p99.Round(time.Millisecond))
	if long() && p99 > bound {
		l.t.Errorf("99 %% of the logins take at most %v, want at most %v", p99, bound)
	}
}
