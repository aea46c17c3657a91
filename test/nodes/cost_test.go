package nodes

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// These constants limit the cost of a load on two nodes, as a multiple of its cost on one node.
const (
	maxCPU        = 1.1  // CPU time
	maxStatements = 1.05 // statements in PostgreSQL
	maxCommands   = 1.1  // commands in Redis; each node has its own cache, so some entries are read twice
)

// A pair is a pair of nodes, with databases that count the nodes' statements and commands.
type pair struct {
	*harness.Nodes
	client   *login
	cookies  harness.Option
	postgres *servers.PostgresServer
	redis    *servers.RedisServer
}

// TestTwoNodesCost signs in, uses and refreshes tokens at one node, and then at two nodes in turn.
// It first compares how many statements and commands a visit causes. It then compares the CPU time,
// without the CPU time that idle nodes use. The test runs only with LONG=1, because it takes
// minutes and needs an otherwise idle machine.
func TestTwoNodesCost(t *testing.T) {
	if os.Getenv("LONG") != "1" {
		t.Skip("LONG=1 compares CPU times")
	}
	rows(t)
	p := newPair(t)
	atOne := func(int) error { return p.visit(p.Each[0]) }
	atBoth := func(i int) error { return p.visit(p.Each[i%2]) }
	p.costOf(t, 0, 1000, atBoth) // fills caches and opens connections

	statements, commands := p.counts(t, atOne)
	statements2, commands2 := p.counts(t, atBoth)
	t.Logf("a visit needs %.2f statements and %.2f commands at one node, %.2f and %.2f at two",
		statements, commands, statements2, commands2)
	if statements2 > statements*maxStatements || commands2 > commands*maxCommands {
		t.Errorf("two nodes need too much, want at most %v times the statements and %v times the commands",
			maxStatements, maxCommands)
	}

	const rounds, visits = 24, 250
	idle := p.idleCores()
	ratios := make([]float64, rounds)
	for round := range rounds {
		// Every other round begins with both nodes, because the first load of a round costs less.
		var one, both time.Duration
		if round%2 == 0 {
			one = p.costOf(t, idle, visits, atOne)
			both = p.costOf(t, idle, visits, atBoth)
		} else {
			both = p.costOf(t, idle, visits, atBoth)
			one = p.costOf(t, idle, visits, atOne)
		}
		ratios[round] = float64(both) / float64(one)
		t.Logf("a visit costs %v at one node, %v at two", one, both)
	}

	slices.Sort(ratios)
	median := (ratios[rounds/2-1] + ratios[rounds/2]) / 2
	t.Logf("idle %.3f cores; two nodes need %.2f times the CPU time of one (%.2f)", idle, median, ratios)
	if median > maxCPU {
		t.Errorf("two nodes need %.2f times the CPU time of one, want at most %.2f", median, maxCPU)
	}
}

// newPair starts two nodes on servers of their own, and signs a subscriber in.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{
		postgres: servers.OwnPostgres(t, "shared_preload_libraries=pg_stat_statements"),
		redis:    servers.OwnRedis(t),
	}
	p.postgres.SQL(t, "CREATE EXTENSION pg_stat_statements")
	backends := []string{
		"SELVAGE_DATABASE=" + p.postgres.Database(t),
		"SELVAGE_SESSIONS=" + p.redis.URL,
	}
	p.Nodes = harness.StartNodes(t, nil, harness.Config{Backends: backends}, harness.Config{})
	p.client = logIn(t, p.Nodes)
	p.cookies = p.client.browser.Cookies()
	return p
}

// visit gets a code at a node, redeems it, refreshes the tokens and uses them.
func (p *pair) visit(node *harness.Server) error {
	c := p.client.at(node)
	flow := c.NewFlow(loginScope)
	code, err := flow.QuickCode(p.cookies)
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

// counts makes visits, and returns the statements and commands per visit. They include the
// statements and commands of idle nodes.
func (p *pair) counts(t *testing.T, visit func(i int) error) (statements, commands float64) {
	t.Helper()
	const visits = 2000
	p.postgres.SQL(t, "SELECT pg_stat_statements_reset()")
	p.redis.CLI(t, "CONFIG", "RESETSTAT")
	p.costOf(t, 0, visits, visit)

	calls := p.postgres.SQL(t, "SELECT sum(calls) FROM pg_stat_statements")
	_, stats, _ := strings.Cut(p.redis.CLI(t, "INFO", "stats"), "total_commands_processed:")
	stats, _, _ = strings.Cut(stats, "\r")
	for text, count := range map[string]*float64{calls: &statements, stats: &commands} {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < visits {
			t.Fatalf("a database counted %q for %d visits: %v", text, visits, err)
		}
		*count = n / visits
	}
	return statements, commands
}

// idleCores returns how many CPU cores the idle nodes use, usually a small fraction of one.
func (p *pair) idleCores() float64 {
	const long = 10 * time.Second
	before := p.cpu()
	<-time.After(long)
	return float64(p.cpu()-before) / float64(long)
}

// costOf makes visits concurrently. It returns the CPU time of the nodes per visit, without the time
// that idle nodes use.
func (p *pair) costOf(t *testing.T, idle float64, visits int, visit func(i int) error) time.Duration {
	t.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	before, began := p.cpu(), time.Now()
	for range 32 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(visits); i = next.Add(1) {
				if err := retry(func() error { return visit(int(i)) }); err != nil {
					t.Errorf("visit %d: %v", i, err)
				}
			}
		})
	}
	workers.Wait()
	background := time.Duration(idle * float64(time.Since(began)))
	return (p.cpu() - before - background) / time.Duration(visits)
}

// retry calls do until it succeeds, at most three times. On a busy machine, a node refuses requests
// that have waited for a second.
func retry(do func() error) (err error) {
	for range 3 {
		if err = do(); err == nil {
			return nil
		}
	}
	return err
}

func (p *pair) cpu() (total time.Duration) {
	for _, node := range p.Each {
		total += harness.CPU(node.PID())
	}
	return total
}
