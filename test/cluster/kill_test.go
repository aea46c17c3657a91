package cluster

import (
	"strings"
	"testing"
	"time"
)

// A loss is a process of the cluster that is killed.
type loss struct {
	what    string
	kill    func()
	replace func()        // starts the process again, or promotes its replica
	without []kind        // operations that succeed before the process is replaced
	within  time.Duration // longest time until operations succeed again, checked only in a long run
	long    bool          // tested only in a long run
}

// every lists all kinds of operations.
var every = []kind{logins, changes, uploads, downloads}

// losses lists the processes of a cluster. PostgreSQL's primary is last, because it is not started
// again.
func (c *Cluster) losses(t *testing.T) (all []loss) {
	for i, node := range c.Each {
		all = append(all, loss{
			what:    "node",
			kill:    node.Kill,
			replace: func() { node.Restart(t) },
			without: every,
			within:  2 * time.Second,
			long:    i > 1,
		})
	}

	for i, r := range c.Redis.Nodes {
		what := "master of Redis"
		if strings.HasPrefix(r.CLI(t, "ROLE"), "slave") {
			what = "replica of Redis"
		}
		all = append(all, loss{
			what:    what,
			kill:    func() { r.Kill(t) },
			replace: func() { r.Start(t) },
			without: every,
			within:  10 * time.Second,
			long:    i > 0 && i < len(c.Redis.Nodes)-1,
		})
	}

	s3, primary, replica := c.S3, c.Postgres.Primary, c.Postgres.Replica
	return append(all,
		loss{
			what:    "object store",
			kill:    func() { s3.Kill(t) },
			replace: func() { s3.Start(t) },
			without: []kind{logins, changes},
			within:  10 * time.Second,
		},
		// Without its synchronous replica, PostgreSQL acknowledges no change.
		loss{
			what:    "replica of PostgreSQL",
			kill:    func() { replica.Kill(t) },
			replace: func() { replica.Start(t) },
			within:  10 * time.Second,
		},
		loss{
			what:    "primary of PostgreSQL",
			kill:    func() { primary.Kill(t) },
			replace: func() { c.Postgres.Promote(t) },
			within:  5 * time.Second,
		})
}

// TestCluster restarts the nodes one by one, and then kills processes of the cluster in turn: one
// of each kind or, in a long run, all of them. The cluster is under load. No acknowledged change is
// lost, and no code or token is used twice.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := Start(t)
	t.Run("restarted one by one", c.restartNodes)

	l := newLoad(t, c.Nodes)
	for _, it := range c.losses(t) {
		if it.long && !long() {
			continue
		}
		began, bound := time.Now(), it.within
		it.kill()
		l.waitSuccess(it.without...)
		if it.without != nil {
			within(t, "without the "+it.what, time.Since(began), bound)
			began, bound = time.Now(), 10*time.Second
		}

		it.replace()
		l.waitSuccess(every...)
		within(t, "with a new "+it.what, time.Since(began), bound)
		waitFallback(t, c.Nodes, "0")
	}
	l.end()
}

// within fails the test if a recovery took longer than want. It does so only in a long run, such as
// before a release, because other programs use the machine during other runs.
func within(t *testing.T, what string, took, want time.Duration) {
	t.Helper()
	t.Logf("%s, the cluster works after %v", what, took.Round(time.Millisecond))
	if long() && took > want {
		t.Errorf("%s, the cluster works only after %v, want at most %v", what, took, want)
	}
}
