package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// A backend is the PostgreSQL and the Redis of a measured server. They run on the same core as the
// load.
type backend struct {
	postgres *servers.PostgresServer
	redis    *servers.RedisServer
	database string // URL of the database
}

func startBackend(p *harness.Program) *backend {
	b := &backend{postgres: servers.OwnPostgres(p), redis: servers.OwnRedis(p)}
	b.database = b.postgres.Database(p)
	return b
}

// env returns the environment variables for a server that uses the backend.
func (b *backend) env() []string {
	return []string{"SELVAGE_DATABASE=" + b.database, "SELVAGE_SESSIONS=" + b.redis.URL}
}

// A spending is the cost of one operation, or the counters from which the cost is computed.
type spending struct {
	node, postgres, redis, load time.Duration // CPU time; load is the benchmark's own
	// Counters of PostgreSQL; commits do not include transactions that only read.
	commits, walBytes      float64
	commands               float64 // number of Redis commands
	auditBytes, tableBytes float64 // growth of tables in bytes; the audit trail is counted separately
}

// spent returns the current counters. Reading them has a small cost, which is included in the cost
// of the operations.
func (b *backend) spent(p *harness.Program, node, load int) spending {
	const query = "SELECT pg_snapshot_xmax(pg_current_snapshot()), pg_current_wal_lsn() - '0/0'"
	fields := strings.Split(b.postgres.SQL(p, query), "|")
	audit, others := b.tableBytes(p)
	return spending{
		node:       cpu(p, node),
		postgres:   cpu(p, b.postgres.PID()),
		redis:      cpu(p, b.redis.PID()),
		load:       cpu(p, load),
		commits:    number(p, fields[0]),
		walBytes:   number(p, fields[1]),
		commands:   b.redisCounter(p, "total_commands_processed"),
		auditBytes: audit,
		tableBytes: others,
	}
}

// minus returns s - o.
func (s spending) minus(o spending) spending { return s.plus(o, -1) }

// times returns s multiplied by a factor.
func (s spending) times(factor float64) spending { return spending{}.plus(s, factor) }

// plus returns s + factor × o.
func (s spending) plus(o spending, factor float64) spending {
	add := func(a, b time.Duration) time.Duration { return a + time.Duration(factor*float64(b)) }
	return spending{
		node:       add(s.node, o.node),
		postgres:   add(s.postgres, o.postgres),
		redis:      add(s.redis, o.redis),
		load:       add(s.load, o.load),
		commits:    s.commits + factor*o.commits,
		walBytes:   s.walBytes + factor*o.walBytes,
		commands:   s.commands + factor*o.commands,
		auditBytes: s.auditBytes + factor*o.auditBytes,
		tableBytes: s.tableBytes + factor*o.tableBytes,
	}
}

// tableBytes returns the size of the audit trail and of all other tables, with their indexes.
func (b *backend) tableBytes(p *harness.Program) (audit, others float64) {
	fields := strings.Split(servers.SQL(p, b.database, `SELECT
	sum(pg_total_relation_size(oid)) FILTER (WHERE relname = 'audit'),
	sum(pg_total_relation_size(oid)) FILTER (WHERE relname <> 'audit')
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`), "|")
	return number(p, fields[0]), number(p, fields[1])
}

// redisBytes returns the memory that Redis has allocated.
func (b *backend) redisBytes(p *harness.Program) float64 { return b.redisCounter(p, "used_memory") }

// redisCounter returns a figure from the output of the command INFO.
func (b *backend) redisCounter(p *harness.Program, name string) float64 {
	for line := range strings.Lines(b.redis.CLI(p, "INFO")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return number(p, value)
		}
	}
	p.Fatalf("INFO does not contain %s", name)
	return 0
}

func number(p *harness.Program, text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		p.Fatalf("reading a figure: %v", err)
	}
	return n
}
