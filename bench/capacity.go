package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"text/tabwriter"
	"time"
)

// dailyUse is how often an active subscriber causes an operation in a day. The refreshes are those
// of an app that is open for eight hours and refreshes a JWT every fifteen minutes.
var dailyUse = map[string]float64{
	"password login (3 requests)": 0.2,
	"code flow, no password":      1,
	"refresh with rotation":       32,
	"SAT issue, known subscriber": 2,
	"introspection":               50,
	"userinfo":                    2,
}

// These constants are assumptions about a large installation.
const (
	activeShare  = 0.25 // fraction of the subscribers who are active on a day
	busiestHour  = 0.1  // fraction of a day's operations in the busiest hour
	devices      = 2    // devices with a grant per subscriber
	auditDays    = 90   // number of days that the audit trail is kept
	targetLoad   = 0.5  // fraction of the cores that should be busy
	nodeCores    = 4
	primaryCores = 16 // cores of a cell's PostgreSQL primary
)

// A need holds the requirements of an installation in its busiest hour.
type need struct {
	subscribers                    float64
	perSecond                      float64 // operations per second
	nodeLoad, databaseLoad, redis  float64 // number of busy cores
	commits, walBytes, commands    float64 // per second
	tableBytes, auditBytes, logins float64 // bytes in tables, in the audit trail, and in Redis for logins
}

// needs returns the requirements of an installation with this many subscribers.
func needs(subscribers float64, costs []cost, g growth) need {
	n := need{subscribers: subscribers, tableBytes: subscribers * g.subscriber}
	active := subscribers * activeShare
	for _, c := range costs {
		daily := active * dailyUse[c.name]
		rate := daily * busiestHour / time.Hour.Seconds()
		n.perSecond += rate
		n.nodeLoad += rate * c.node.Seconds()
		n.databaseLoad += rate * c.postgres.Seconds()
		n.redis += rate * c.redis.Seconds()
		n.commits += rate * c.commits
		n.walBytes += rate * c.walBytes
		n.commands += rate * c.commands
		n.auditBytes += daily * auditDays * c.auditBytes

		switch c.name {
		case "code flow, no password":
			n.tableBytes += subscribers * devices * c.tableBytes
		case "password login (3 requests)":
			n.logins = rate * pendingLogin.Seconds() * g.pendingLogin
		}
	}
	return n
}

// pendingLogin is how long Redis keeps an unfinished login.
const pendingLogin = 30 * time.Minute

// cells returns how many cells are needed. A cell is an installation for a part of the subscribers,
// so that a single PostgreSQL primary is enough for it.
func (n need) cells() int { return int(math.Ceil(n.databaseLoad / (primaryCores * targetLoad))) }

// nodes returns the number of nodes in a cell: enough for its load, and one more that may fail.
func (n need) nodes() int {
	return int(math.Ceil(n.nodeLoad/float64(n.cells())/(nodeCores*targetLoad))) + 1
}

// shards returns the number of Redis Cluster masters in a cell. Redis uses one core for commands.
func (n need) shards() int {
	return max(1, int(math.Ceil(n.redis/float64(n.cells())/targetLoad)))
}

// printSizes prints the requirements of installations of several sizes.
func printSizes(out io.Writer, costs []cost, g growth) {
	fmt.Fprintf(out, "\nInstallations in their busiest hour; nodes have %d cores, PostgreSQL %d:\n",
		nodeCores, primaryCores)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "subscribers\toperations/s\tnode cores\tPostgreSQL cores\tcommits/s\tWAL MB/s\tRedis cores\t"+
		"cells\tnodes each\tRedis masters each\ttables GB\taudit GB\t")
	for _, subscribers := range []float64{1e6, 1e8, 1e9} {
		n := needs(subscribers, costs, g)
		fmt.Fprintf(t, "%.0g\t%.0f\t%.2f\t%.2f\t%.0f\t%.1f\t%.2f\t%d\t%d\t%d\t%.0f\t%.0f\t\n",
			n.subscribers, n.perSecond, n.nodeLoad, n.databaseLoad, n.commits, n.walBytes/1e6, n.redis,
			n.cells(), n.nodes(), n.shards(), n.tableBytes/1e9, n.auditBytes/1e9)
	}
	_ = t.Flush() // a failed write to the terminal is ignored
	fmt.Fprintf(out, "\n10⁹ recordings: %.0f GB in the tables.\n", 1e9*g.recording/1e9)

	printFailure(out, costs)
}

// printFailure simulates code flows in a cell of three nodes, before and after one node fails.
func printFailure(out io.Writer, costs []cost) {
	for _, c := range costs {
		if c.name != "code flow, no password" {
			continue
		}
		fmt.Fprintf(out, "\nCode flows in a cell of nodes with %d cores, simulated:\n", nodeCores)
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "nodes\tload of their cores\tp50 ms\tp99 ms\t")
		rate := targetLoad * 3 * nodeCores / c.node.Seconds()
		for _, nodes := range []int{3, 2} {
			r := rand.New(rand.NewPCG(1, 1))
			took := simulate(cluster{nodes: nodes, cores: nodeCores, database: primaryCores, flush: c.flush()},
				poisson(r, rate, 30*time.Second), c.draw(r, c.postgres))
			load := rate * c.node.Seconds() / float64(nodes*nodeCores)
			fmt.Fprintf(t, "%d\t%.0f %%\t%.2f\t%.2f\t\n", nodes, 100*load,
				milliseconds(percentile(took, 0.5)), milliseconds(percentile(took, 0.99)))
		}
		_ = t.Flush() // a failed write to the terminal is ignored
	}
}
