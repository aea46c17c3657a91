package doctor

import (
	"fmt"
	"strings"

	"github.com/selvage/selvage/internal/database"
)

// oldestPostgres is the oldest supported server_version_num.
const oldestPostgres = 120000

// postgres checks the setup of a PostgreSQL server. needed is how many connections this
// node makes to it. rows is true for the main database, whose commits must be durable.
func postgres(r database.Report, needed int, rows bool) (all []Finding) {
	s := r.Server
	add := func(name string, f Finding) { all = append(all, f.of(name)) }
	add("", finef("PostgreSQL %s at %s, database %s, %s", s.Release, s.At, s.Name, inUnits(uint64(r.Size))))
	if s.Version < oldestPostgres {
		add("version", brokenf("upgrade it", "PostgreSQL %s is older than 12", s.Release))
	}

	if s.Standby {
		add("standby", brokenf(
			"name the primary in the URL; of several hosts, the one that takes writes is used",
			"it is a standby, and only reads"))
	}

	add("connections", room(s, needed))
	add("role", rights(s))
	if rows {
		add("durability", safety(s))
	}

	if !s.Encrypted && !s.Local {
		add("encryption", warnedf(
			"add ?sslmode=verify-full to the URL, and sslrootcert=FILE for an authority of your own",
			"passwords and rows cross the network in the clear"))
	}

	if !s.Checksums {
		add("checksums", warnedf("stop PostgreSQL and run `pg_checksums --enable -D DATADIR`",
			"damage of its disk would not be noticed: data_checksums is off"))
	}

	if !s.Autovacuum {
		add("autovacuum", warnedf("ALTER SYSTEM SET autovacuum = on, then SELECT pg_reload_conf()",
			"autovacuum is off: tables grow without end, and one day it stops"))
	}
	return all
}

// room compares the server's connection limit with what this node needs.
func room(s *database.ServerReport, needed int) Finding {
	told := fmt.Sprintf("%d in use of %d; this node makes %d at most", s.InUse, s.Connections, needed)
	const remedy = "raise max_connections in postgresql.conf and restart it, or lower pool.database and pool.sessions of each node"
	switch {
	case needed > s.Connections:
		return brokenf(remedy, "%s", told)
	case s.InUse > s.Connections*9/10, 2*needed > s.Connections:
		return warnedf(remedy, "%s", told)
	}
	return finef("%s", told)
}

// rights checks that the role has all privileges that it needs, and is not a superuser.
func rights(s *database.ServerReport) Finding {
	switch {
	case len(s.Refused) > 0:
		return brokenf(fmt.Sprintf(
			"GRANT ALL ON ALL TABLES IN SCHEMA public TO %s; or run as the role that made them", s.Role),
			"role %s may not read and write %s", s.Role, strings.Join(s.Refused, ", "))
	case !s.Creates:
		return brokenf(fmt.Sprintf("GRANT CREATE, USAGE ON SCHEMA public TO %s", s.Role),
			"role %s may not make tables, which new versions do", s.Role)
	case s.Superuser:
		return warnedf("make a role for it: CREATE ROLE selvage LOGIN PASSWORD '…', and give it the database",
			"role %s is a superuser, which is needed for nothing", s.Role)
	}
	return finef("%s, which may do what it must", s.Role)
}

// safety checks that acknowledged commits survive a power failure.
func safety(s *database.ServerReport) Finding {
	const remedy = "ALTER SYSTEM SET %s = on, then SELECT pg_reload_conf()"
	switch {
	case !s.Fsync:
		return brokenf(fmt.Sprintf(remedy, "fsync"), "fsync is off: a power cut destroys the database")
	case !s.FullPages:
		return brokenf(fmt.Sprintf(remedy, "full_page_writes"),
			"full_page_writes is off: a power cut can destroy the database")
	}
	return finef("commits are on disk when they return (synchronous_commit is %s)", s.SynchronousCommit)
}
