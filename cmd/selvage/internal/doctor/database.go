package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/deliver"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store"
)

// patienceOfCheck limits how long an SQLite file is checked for damage.
const patienceOfCheck = 5 * time.Second

func (e *Examination) databaseChecks() []check {
	return []check{
		{"Database", "rows", e.rows},
		{"Sessions", "entries", e.entries},
		{"Webhooks", "deliveries", e.webhooks},
		{"Clients", "logouts", e.logouts},
		{"Clocks", "clocks", e.clocks},
	}
}

func (e *Examination) storeConfig() store.Config {
	return store.Config{URL: string(e.Config.Database), Dir: e.Config.Data, Check: patienceOfCheck}
}

// rows checks the database, its connections and its schema version.
func (e *Examination) rows(ctx context.Context) []Finding {
	r, known, err := store.Look(ctx, e.storeConfig())
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{e.noDatabase()}
	}
	if err != nil {
		return []Finding{unfit(string(e.Config.Database), err)}
	}

	all := e.database(r, string(e.Config.Database), e.connections(), true)
	switch {
	case r.Schema == 0:
		all = append(all, finef("none yet; the first start creates it").of("schema"))
	case r.Schema < known:
		upgraded := finef("%s; the next start upgrades it to %s. "+
			"A file is copied first; back up a server with `selvage backup create`", r.Schema, known)
		all = append(all, upgraded.of("schema"))
	default:
		all = append(all, finef("%s, current", r.Schema).of("schema"))
	}

	return all
}

// overRows opens the store read-only and passes it to look. If the database cannot be opened or has
// a different schema, overRows returns nil, because the rows check reports that.
func (e *Examination) overRows(ctx context.Context, look func(*store.Store) []Finding) []Finding {
	c := e.storeConfig()
	c.Check = 0
	c.ReadOnly = true
	c.Pool = 1
	r, known, err := store.Look(ctx, c)
	if err != nil || r.Schema != known {
		return nil
	}
	s, err := store.Open(ctx, c)
	if err != nil {
		return nil
	}
	defer s.Close()
	return look(s)
}

// noDatabase returns the finding for a missing database file. If the data directory contains other
// files, the finding is an error, because the database was lost.
func (e *Examination) noDatabase() Finding {
	entries, err := os.ReadDir(e.Config.Data)
	if err != nil || len(entries) == 0 {
		return skippedf("missing; the first start creates it")
	}
	return brokenf("%s is missing, but %s is not empty", fileOf(string(e.Config.Database)), e.Config.Data).
		withRemedy("restore it, or set --database; a start would create an empty one")
}

// entries checks the store of short-lived state: Redis, PostgreSQL or a file.
func (e *Examination) entries(ctx context.Context) []Finding {
	if e.Config.Sessions.Redis() {
		return append(e.inRedis(ctx), e.fallback(ctx)...)
	}
	if e.Config.Sessions.Shared() && string(e.Config.Sessions) == string(e.Config.Database) {
		return []Finding{finef("in the main database")}
	}

	r, err := sessionsql.Look(ctx, sessionsql.Config{
		URL:   string(e.Config.Sessions),
		Dir:   e.Config.Data,
		Check: patienceOfCheck,
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{skippedf("missing; the first start creates the file")}
	case err != nil:
		return []Finding{unfit(string(e.Config.Sessions), err)}
	}

	return e.database(r, string(e.Config.Sessions), int(e.Config.Pool.Sessions), false)
}

// fallback checks the file that holds sessions while Redis is unavailable. This file does not exist
// if the main database is PostgreSQL, because then PostgreSQL holds the sessions.
func (e *Examination) fallback(ctx context.Context) []Finding {
	const url = "sqlite:sessions.db"
	if e.Config.Database.Shared() {
		return nil
	}
	r, err := sessionsql.Look(ctx, sessionsql.Config{URL: url, Dir: e.Config.Data, Check: patienceOfCheck})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // a start of the server creates it
	case err != nil:
		return []Finding{unfit(url, err).of("fallback")}
	}
	return []Finding{e.file(r, url)[0].of("fallback")}
}

// database returns the findings for the file or server described by r. isMain is set for the main
// database.
func (e *Examination) database(r database.Report, url string, connections int, isMain bool) []Finding {
	if r.Server != nil {
		return postgres(r, connections, isMain)
	}
	return e.file(r, url)
}

// connections returns how many connections this node opens to the main database.
func (e *Examination) connections() int {
	n := int(e.Config.Pool.Database)
	sameDatabase := string(e.Config.Sessions) == string(e.Config.Database)
	if sameDatabase || e.Config.Sessions.Redis() { // the fallback of Redis is in the main database
		n += int(e.Config.Pool.Sessions)
	}
	return n
}

// unfit returns the finding for a database that the server cannot use.
func unfit(url string, err error) Finding {
	var u *database.Unfit
	switch {
	case !errors.As(err, &u):
		return brokenf("%s", plainly(err)).
			withRemedy("see the findings about the data directory, and check the server's log")
	case config.DatabaseURL(url).Shared():
		return brokenf("%s", u.Found).withRemedy(Text(u.Remedy))
	}
	return brokenf("%s: %s", fileOf(url), u.Found).withRemedy(Text(u.Remedy))
}

// largeLog is the size of an SQLite write-ahead log above which something probably prevents the
// database from moving the log into the main file.
const largeLog = 256 << 20

// file returns the findings for an SQLite file: its size, its log and its write lock.
func (e *Examination) file(r database.Report, url string) []Finding {
	name := fileOf(url)
	size := inUnits(uint64(r.Size + r.Log))
	all := []Finding{finef("%s, %s, intact", name, size)}
	if !r.Checked {
		all[0] = finef("%s, %s; too large to verify within %s", name, size, patienceOfCheck)
	}
	if r.Log > largeLog {
		const remedy = "restart the server; if the file grows again, look for a long-running reader, " +
			"such as a backup or an sqlite3 shell"
		all = append(all, warnedf("%s-wal has grown to %s", name, inUnits(uint64(r.Log))).withRemedy(remedy).of("log"))
	}

	if r.Writer != 0 && r.Writer != e.running.PID {
		all = append(all, brokenf("process %s has locked %s for writing", r.Writer, name).
			withRemedy("stop that process; until then changes wait, and return 503 after 5 seconds").of("lock"))
	}
	return all
}

// fileOf returns the path in an sqlite: URL.
func fileOf(url string) string { return strings.TrimPrefix(url, "sqlite:") }

// stale is how long a delivery may wait before an operator should look at its receiver.
const stale = time.Hour

// webhooks checks the queue of webhook deliveries.
func (e *Examination) webhooks(ctx context.Context) []Finding {
	queue := func(s *store.Store) deliver.Queue { return s.Webhooks.Queue() }
	return e.waiting(ctx, queue,
		textf("`selvage webhook list` shows which receivers fail, and `selvage webhook deliveries ID` shows why"))
}

// logouts checks the queue of back-channel logouts.
func (e *Examination) logouts(ctx context.Context) []Finding {
	queue := func(s *store.Store) deliver.Queue { return s.Logouts.Queue() }
	return e.waiting(ctx, queue, textf("`selvage client logouts ID` shows why a client fails"))
}

// waiting reports how many deliveries are pending in a queue. If the oldest is stale, it warns with
// advice.
func (e *Examination) waiting(ctx context.Context, queue func(*store.Store) deliver.Queue, advice Text) []Finding {
	return e.overRows(ctx, func(s *store.Store) []Finding {
		n, oldest, err := queue(s).Backlog(ctx)
		if err != nil {
			return []Finding{skippedf("%s", plainly(err))}
		}
		wait := time.Since(oldest)
		switch {
		case n == 0:
			return []Finding{finef("nothing is pending")}
		case wait > stale:
			return []Finding{warnedf("%s pending, the oldest for %s", n, wait.Round(time.Minute)).withRemedy(advice)}
		}
		return []Finding{finef("%s pending, none for long", n)}
	})
}
