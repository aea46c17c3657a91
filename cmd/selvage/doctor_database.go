package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/config"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/deliver"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/store"
)

// patienceOfCheck is how long a file is looked through for damage.
const patienceOfCheck = 5 * time.Second

func (e *examination) databaseChecks() []check {
	return []check{
		{"Database", "rows", e.rows},
		{"Sessions", "entries", e.entries},
		{"Webhooks", "deliveries", e.webhooks},
		{"Clients", "logouts", e.logouts},
		{"Clocks", "clocks", e.clocks},
	}
}

func (e *examination) storeConfig() store.Config {
	return store.Config{URL: string(e.config.Database), Dir: e.config.Data, Check: patienceOfCheck}
}

// rows looks at the database.
func (e *examination) rows(ctx context.Context) []finding {
	r, known, err := store.Look(ctx, e.storeConfig())
	if errors.Is(err, fs.ErrNotExist) {
		return []finding{e.noDatabase()}
	}
	if err != nil {
		return []finding{unfit(string(e.config.Database), err)}
	}
	all := e.database(r, string(e.config.Database), e.connections(), true)
	switch {
	case r.Schema == 0:
		all = append(all, finef("none yet; a start makes it").of("schema"))
	case r.Schema < known:
		all = append(all, finef("%d; the next start makes %d of it, after a copy where it is a file; of a server make one by pg_dump", r.Schema, known).of("schema"))
	default:
		all = append(all, finef("%d, which this version knows", r.Schema).of("schema"))
	}
	return all
}

// overRows looks into the database, where there is one of our schema. If not,
// somebody else says why.
func (e *examination) overRows(ctx context.Context, look func(*store.Store) []finding) []finding {
	c := e.storeConfig()
	c.Check, c.ReadOnly, c.Pool = 0, true, 1
	if r, known, err := store.Look(ctx, c); err != nil || r.Schema != known {
		return nil
	}
	s, err := store.Open(ctx, c)
	if err != nil {
		return nil
	}
	defer s.Close()
	return look(s)
}

// noDatabase tells apart what was never there and what is gone.
func (e *examination) noDatabase() finding {
	entries, err := os.ReadDir(e.config.Data)
	if err != nil || len(entries) == 0 {
		return skippedf("there is none before the first start")
	}
	return brokenf("put it back, or name it with --database; a start makes an empty one",
		"%s is not there, and %s is not empty", fileOf(string(e.config.Database)), e.config.Data)
}

// entries looks at where short-lived state is kept.
func (e *examination) entries(ctx context.Context) []finding {
	if e.config.Sessions.Redis() {
		return append(e.inRedis(ctx), e.fallback(ctx)...)
	}
	if e.config.Sessions.Shared() && string(e.config.Sessions) == string(e.config.Database) {
		return []finding{finef("in the database of the rows")}
	}
	r, err := sessionsql.Look(ctx, sessionsql.Config{URL: string(e.config.Sessions), Dir: e.config.Data, Check: patienceOfCheck})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{skippedf("there are none yet; a start makes the file")}
	case err != nil:
		return []finding{unfit(string(e.config.Sessions), err)}
	}
	return e.database(r, string(e.config.Sessions), int(e.config.Pool.Sessions), false)
}

// fallback looks at the file in which sessions are kept while Redis is away, if it is
// one.
func (e *examination) fallback(ctx context.Context) []finding {
	const url = "sqlite:sessions.db"
	if e.config.Database.Shared() {
		return nil
	}
	r, err := sessionsql.Look(ctx, sessionsql.Config{URL: url, Dir: e.config.Data, Check: patienceOfCheck})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // a start makes it
	case err != nil:
		return []finding{unfit(url, err).of("fallback")}
	}
	return []finding{e.file(r, url)[0].of("fallback")}
}

// database tells what was seen of a file or a server.
func (e *examination) database(r database.Report, url string, connections int, rows bool) []finding {
	if r.Server != nil {
		return postgres(r, connections, rows)
	}
	return e.file(r, url)
}

// connections counts those that this node makes to the database of the rows.
func (e *examination) connections() int {
	n := int(e.config.Pool.Database)
	if string(e.config.Sessions) == string(e.config.Database) || e.config.Sessions.Redis() { // whose fallback is there
		n += int(e.config.Pool.Sessions)
	}
	return n
}

// unfit tells why a database cannot be used.
func unfit(url string, err error) finding {
	var u *database.Unfit
	if errors.As(err, &u) {
		if config.DatabaseURL(url).Shared() {
			return brokenf(u.Remedy, "%s", u.Found)
		}
		return brokenf(u.Remedy, "%s: %s", fileOf(url), u.Found)
	}
	return brokenf("see what is found of the data directory, and look into the log of the server", "%s", plainly(err))
}

// largeLog is how large the log of an SQLite file is when something keeps it from
// being moved into the file.
const largeLog = 256 << 20

// file tells what was seen of an SQLite file.
func (e *examination) file(r database.Report, url string) []finding {
	name := fileOf(url)
	size := inUnits(uint64(r.Size + r.Log))
	told := fmt.Sprintf("%s, %s, looked through and whole", name, size)
	if !r.Checked {
		told = fmt.Sprintf("%s, %s; too large to be looked through in %s", name, size, patienceOfCheck)
	}
	all := []finding{finef("%s", told)}
	if r.Log > largeLog {
		all = append(all, warnedf("restart the server; if it grows again, find what reads for so long (a backup, an sqlite3 shell)",
			"%s-wal has grown to %s", name, inUnits(uint64(r.Log))).of("log"))
	}
	if r.Writer != 0 && r.Writer != e.running.PID {
		all = append(all, brokenf("end it; until then changes wait, and are answered 503 after 5 seconds",
			"process %d has locked %s for writing", r.Writer, name).of("lock"))
	}
	return all
}

// fileOf gives the FILE of sqlite:FILE.
func fileOf(url string) string { return strings.TrimPrefix(url, "sqlite:") }

// stale is how long a delivery may wait before somebody should look at its receiver.
const stale = time.Hour

// webhooks looks at what waits to be told to webhooks.
func (e *examination) webhooks(ctx context.Context) []finding {
	return e.waiting(ctx, (*store.Store).Webhooks, "deliveries", "`selvage webhook list` shows which receivers fail, `selvage webhook deliveries ID` how")
}

// logouts looks at what waits to be told to clients.
func (e *examination) logouts(ctx context.Context) []finding {
	return e.waiting(ctx, (*store.Store).Logouts, "logouts", "`selvage client logouts ID` shows how a client fails")
}

// waiting looks at a queue.
func (e *examination) waiting(ctx context.Context, of func(*store.Store) deliver.Queue, what, advice string) []finding {
	return e.overRows(ctx, func(s *store.Store) []finding {
		n, oldest, err := of(s).Backlog(ctx)
		switch waits := time.Since(oldest); {
		case err != nil:
			return []finding{skippedf("%s", plainly(err))}
		case n == 0:
			return []finding{finef("nothing waits to be told")}
		case waits > stale:
			return []finding{warnedf(advice, "%d %s wait, the oldest for %s", n, what, waits.Round(time.Minute))}
		}
		return []finding{finef("%d %s wait, none for long", n, what)}
	})
}
