package doctor

import (
	"strings"

	"github.com/selvage/selvage/internal/database"
)

// oldestPostgres is the server_version_num of the oldest supported version.
const oldestPostgres = 120000

// postgres checks the configuration of a PostgreSQL server. needed is the number of connections
// that this node opens to that server. isMain is set for the main database, whose commits must be
// durable.
func postgres(r database.Report, needed int, isMain bool) (all []Finding) {
	s := r.Server
	add := func(name string, f Finding) { all = append(all, f.of(name)) }
	add("", finef("PostgreSQL %s at %s, database %s, %s", s.Release, s.At, s.Name, inUnits(uint64(r.Size))))
	if s.Version < oldestPostgres {
		add("version", brokenf("PostgreSQL %s is older than 12", s.Release).withRemedy("upgrade PostgreSQL"))
	}

	if s.Standby {
		add("standby", brokenf("the server is a read-only standby").
			withRemedy("set the URL to the primary; if the URL has several hosts, the writable one is used"))
	}

	add("connections", checkConnections(s, needed))
	add("role", checkRole(s))
	if isMain {
		add("durability", checkDurability(s))
	}

	if !s.Encrypted && !s.Local {
		add("encryption", warnedf("passwords and rows cross the network unencrypted").
			withRemedy("add ?sslmode=verify-full to the URL, and sslrootcert=FILE for a private authority"))
	}

	if !s.Checksums {
		add("checksums", warnedf("data_checksums is off: disk corruption would go unnoticed").
			withRemedy("stop PostgreSQL and run `pg_checksums --enable -D DATADIR`"))
	}

	if !s.Autovacuum {
		add("autovacuum", warnedf("autovacuum is off: tables grow without limit, and writes eventually stop").
			withRemedy("ALTER SYSTEM SET autovacuum = on, then SELECT pg_reload_conf()"))
	}
	return all
}

// checkConnections compares the server's connection limit with the number of connections that this
// node needs.
func checkConnections(s *database.ServerReport, needed int) Finding {
	const remedy Text = "raise max_connections in postgresql.conf and restart PostgreSQL, or lower " +
		"pool.database and pool.sessions on each node"
	almostFull := s.InUse > s.Connections*9/10
	noSecondNode := 2*needed > s.Connections

	f := finef("%s of %s in use; this node opens up to %s", s.InUse, s.Connections, needed)
	switch {
	case needed > s.Connections:
		f.Status = Broken
		f.Remedy = remedy
	case almostFull || noSecondNode:
		f.Status = Warned
		f.Remedy = remedy
	}
	return f
}

// checkRole checks that selvage's role has all the privileges it needs, and is not a superuser.
func checkRole(s *database.ServerReport) Finding {
	switch {
	case len(s.Refused) > 0:
		return brokenf("role %s lacks read or write permission on %s", s.Role, strings.Join(s.Refused, ", ")).
			withRemedy(textf(
				"GRANT ALL ON ALL TABLES IN SCHEMA public TO %s; or use the role that created them", s.Role))
	case !s.Creates:
		return brokenf("role %s cannot create tables, which upgrades need", s.Role).
			withRemedy(Text("GRANT CREATE, USAGE ON SCHEMA public TO " + s.Role))
	case s.Superuser:
		return warnedf("role %s is a superuser, which is not needed", s.Role).
			withRemedy("create a role with CREATE ROLE selvage LOGIN PASSWORD '…', and make it the database's owner")
	}
	return finef("%s has the permissions it needs", s.Role)
}

// checkDurability checks that acknowledged commits survive a power failure. It does not check
// synchronous_commit, because package database never uses the value off for the main database. With
// any other value, a commit waits until the server's own disk has it.
func checkDurability(s *database.ServerReport) Finding {
	switch {
	case !s.Fsync:
		return brokenf("fsync is off: a power failure destroys the database").
			withRemedy("ALTER SYSTEM SET fsync = on, then SELECT pg_reload_conf()")
	case !s.FullPages:
		return brokenf("full_page_writes is off: a power failure can destroy the database").
			withRemedy("ALTER SYSTEM SET full_page_writes = on, then SELECT pg_reload_conf()")
	}
	return finef("commits are on disk when they return (synchronous_commit is %s)", s.SynchronousCommit)
}
