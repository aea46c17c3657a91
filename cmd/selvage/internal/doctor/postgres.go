package doctor

import (
	"strings"

	"github.com/selvage/selvage/internal/database"
)

// oldestPostgres is the server_version_num of the oldest supported version.
const oldestPostgres = 120000

// postgres checks the configuration of a PostgreSQL server. needed is the number of connections
// that this node opens to it. rows is set for the main database, whose commits must be durable.
func postgres(r database.Report, needed int, rows bool) (all []Finding) {
	s := r.Server
	add := func(name string, f Finding) { all = append(all, f.of(name)) }
	add("", finef("PostgreSQL %s at %s, database %s, %s", s.Release, s.At, s.Name, inUnits(uint64(r.Size))))
	if s.Version < oldestPostgres {
		add("version", brokenf("upgrade PostgreSQL", "PostgreSQL %s is older than 12", s.Release))
	}

	if s.Standby {
		add("standby", brokenf(
			"set the URL to the primary; if the URL has several hosts, the writable one is used",
			"the server is a read-only standby"))
	}

	add("connections", room(s, needed))
	add("role", rights(s))
	if rows {
		add("durability", safety(s))
	}

	if !s.Encrypted && !s.Local {
		add("encryption", warnedf(
			"add ?sslmode=verify-full to the URL, and sslrootcert=FILE for a private authority",
			"passwords and rows cross the network unencrypted"))
	}

	if !s.Checksums {
		add("checksums", warnedf("stop PostgreSQL and run `pg_checksums --enable -D DATADIR`",
			"data_checksums is off: disk corruption would go unnoticed"))
	}

	if !s.Autovacuum {
		add("autovacuum", warnedf("ALTER SYSTEM SET autovacuum = on, then SELECT pg_reload_conf()",
			"autovacuum is off: tables grow without limit, and writes eventually stop"))
	}
	return all
}

// room compares the server's connection limit with the number of connections that this node needs.
func room(s *database.ServerReport, needed int) Finding {
	f := finef("%s of %s in use; this node opens up to %s", s.InUse, s.Connections, needed)
	const remedy Text = "raise max_connections in postgresql.conf and restart PostgreSQL, or lower " +
		"pool.database and pool.sessions on each node"
	switch {
	case needed > s.Connections:
		f.Status, f.Remedy = Broken, remedy
	case s.InUse > s.Connections*9/10, 2*needed > s.Connections:
		f.Status, f.Remedy = Warned, remedy
	}
	return f
}

// rights checks that the role has all privileges that the server needs, and that it is not a
// superuser.
func rights(s *database.ServerReport) Finding {
	switch {
	case len(s.Refused) > 0:
		return brokenf(textf(
			"GRANT ALL ON ALL TABLES IN SCHEMA public TO %s; or use the role that created them", s.Role),
			"role %s lacks read or write permission on %s", s.Role, strings.Join(s.Refused, ", "))
	case !s.Creates:
		return brokenf(Text("GRANT CREATE, USAGE ON SCHEMA public TO "+s.Role),
			"role %s cannot create tables, which upgrades need", s.Role)
	case s.Superuser:
		return warnedf("create a role with CREATE ROLE selvage LOGIN PASSWORD '…', and make it the database's owner",
			"role %s is a superuser, which is not needed", s.Role)
	}
	return finef("%s has the permissions it needs", s.Role)
}

// safety checks that acknowledged commits survive a power failure.
func safety(s *database.ServerReport) Finding {
	switch {
	case !s.Fsync:
		return brokenf("ALTER SYSTEM SET fsync = on, then SELECT pg_reload_conf()",
			"fsync is off: a power failure destroys the database")
	case !s.FullPages:
		return brokenf("ALTER SYSTEM SET full_page_writes = on, then SELECT pg_reload_conf()",
			"full_page_writes is off: a power failure can destroy the database")
	}
	return finef("commits are on disk when they return (synchronous_commit is %s)", s.SynchronousCommit)
}
