package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// filePath returns the file named by a URL of the form sqlite:FILE.
func filePath(raw, dir string) (string, error) {
	file, ok := strings.CutPrefix(raw, "sqlite:")
	if !ok || file == "" {
		return "", errors.New("a database URL is sqlite:FILE or postgres://USER:PASSWORD@HOST:PORT/NAME")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return file, nil
}

// A file is an SQLite database. It has one writer, whose changes share commits, and many readers.
type file struct {
	writer *writer
	reads  *sql.DB
	stmts  sync.Map // query to *sql.Stmt
	leave  func()   // undoes register

	checking  sync.WaitGroup
	stopCheck context.CancelFunc // stops the background check; nil if there is none

	checkpointing   sync.WaitGroup
	stopCheckpoints context.CancelFunc // nil if there are no checkpoints

	name    string
	sync    Sync
	damaged atomic.Pointer[Unfit] // damage found while the file was in use; once set, all queries fail
}

var _ DB = (*file)(nil)

func openFile(ctx context.Context, c Config) (*file, error) {
	name, err := filePath(c.URL, c.Dir)
	if err != nil {
		return nil, err
	}
	d := &file{name: name, sync: c.Sync}
	if err := d.open(ctx, name, c); err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, errors.Join(diagnose(name, c.Sync, err), d.Close()))
	}
	return d, nil
}

func (d *file) open(ctx context.Context, name string, c Config) (err error) {
	if d.leave, err = register(name, func() error { return c.checkUnopened(name, !c.ReadOnly) }); err != nil {
		return err
	}

	// Do not change a file that belongs to another program or is known to be damaged.
	seen, err := readReport(ctx, name, c)
	if err != nil && (c.ReadOnly || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}

	if c.ReadOnly {
		return d.openReads(ctx, fileURI(name, "_pragma=busy_timeout(5000)&"+readOnlyAccess(name)))
	}

	db, err := sql.Open("sqlite", dataSource(name, c.Sync, writerCache))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := withSchemaLock(ctx, name, func() error { return c.Prepare(ctx, db, SQLite) }); err != nil {
		return errors.Join(err, db.Close())
	}

	if d.writer, err = newWriter(ctx, db); err != nil {
		return err
	}
	if err := d.openReads(ctx, dataSource(name, c.Sync, readerCache)+"&_pragma=query_only(1)"); err != nil {
		return err
	}

	ctx, d.stopCheckpoints = context.WithCancel(context.Background())
	d.checkpointing.Go(func() { d.checkpoint(ctx) })

	if c.inBackground(seen) {
		d.checkInBackground(c)
	}
	return nil
}

// checkInBackground checks a large file while the file is in use, since a check before the first
// use would delay the start. If it finds damage, all later queries fail.
func (d *file) checkInBackground(c Config) {
	var ctx context.Context
	ctx, d.stopCheck = context.WithCancel(context.Background())
	d.checking.Go(func() {
		if _, err := checkFile(ctx, d.name, c); err != nil {
			_ = d.explain(err) // records the damage
		}
	})
}

func (d *file) openReads(ctx context.Context, dsn string) (err error) {
	if d.reads, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	d.reads.SetMaxOpenConns(maxReaders)
	d.reads.SetMaxIdleConns(maxReaders)
	d.reads.SetConnMaxIdleTime(readerIdle)
	d.reads.SetConnMaxLifetime(readerLife)
	return d.reads.PingContext(ctx)
}

// fileURI returns the URI that the driver needs to open a file with the given parameters.
func fileURI(name, parameters string) string {
	return "file:" + (&url.URL{Path: name}).EscapedPath() + "?" + parameters
}

// maxReaders is the number of connections that can read at the same time.
const maxReaders = 8

// Sizes of a connection's page cache, in KiB. Allocated pages take twice this much memory. Each
// reader has its own cache. This cache only needs to hold the inner pages of indexes, because the
// kernel caches the file for all readers. Mapping the file would save a copy per read, but then an I/O
// error would end the process.
const (
	writerCache = 16000
	readerCache = 2000
)

// maxLogPages is the number of pages in the log at which SQLite itself begins checkpoints, while
// changes wait. It bounds the log if the checkpoints of [file.checkpoint] fail.
const maxLogPages = 16000

// readerIdle is how long an idle reader is kept. Its cache and its copy of the schema take 1 to 5
// MiB. The sweeps that run every minute need several readers at the same time.
const readerIdle = 20 * time.Second

// readerLife is the maximum age of a reader. Background work always keeps one reader busy. Without
// this limit, that reader would keep the cache that it filled under load.
const readerLife = time.Minute

func dataSource(name string, sync Sync, cache int) string {
	return fileURI(name, fmt.Sprintf("_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(%s)"+
		"&_pragma=foreign_keys(1)&_pragma=cache_size(-%d)&_pragma=wal_autocheckpoint(%d)", sync, cache, maxLogPages))
}

func (d *file) Ping(ctx context.Context) error {
	if damage := d.damaged.Load(); damage != nil {
		return unavailable(damage)
	}
	return d.explain(d.reads.PingContext(ctx))
}

// explain converts an error to problem.Unavailable if the file caused it, rather than the query. If
// the file is damaged, all later queries fail.
func (d *file) explain(err error) error {
	if err == nil {
		return nil
	}
	var found *Unfit
	if errors.As(explainDamage(d.name, d.sync, err), &found) {
		d.damaged.Store(found)
		return unavailable(found)
	}
	return explain(err)
}

// Clock returns the time of this machine, because the file is on this machine.
func (d *file) Clock(context.Context) (time.Time, error) { return time.Now(), nil }

func (d *file) Close() (err error) {
	if d.stopCheck != nil {
		d.stopCheck()
		d.checking.Wait()
	}
	if d.stopCheckpoints != nil {
		d.stopCheckpoints()
		d.checkpointing.Wait()
	}
	if d.writer != nil {
		err = d.writer.close()
	}
	if d.reads != nil {
		err = errors.Join(err, d.reads.Close())
	}
	if d.leave != nil {
		d.leave()
	}
	return err
}

func (d *file) Read() Tx  { return stmtTx{prepare: d.onReader, explain: d.explain} }
func (d *file) Watch() Tx { return d.Read() }

// Change queues the change for the writer. If ctx is done before the queue has room, the change is
// abandoned. Once queued, it runs even if ctx is done.
func (d *file) Change(ctx context.Context, do func(Tx) error) error {
	return d.change(ctx, change{do: do})
}

func (d *file) Once(ctx context.Context, do func(Tx) error) error {
	return d.change(ctx, change{do: do, once: true})
}

func (d *file) change(ctx context.Context, c change) error {
	if damage := d.damaged.Load(); damage != nil {
		return unavailable(damage)
	}
	if d.writer == nil {
		return ErrReadOnly
	}
	return d.explain(d.writer.do(ctx, c))
}

func (d *file) Stats() Stats {
	reads := d.reads.Stats()
	if d.writer == nil {
		return Stats{Open: reads.OpenConnections, InUse: reads.InUse}
	}
	return Stats{
		Open:    reads.OpenConnections + 1,
		InUse:   reads.InUse,
		Waits:   reads.WaitCount,
		Waited:  reads.WaitDuration,
		Changes: d.writer.changes.Load(),
		Commits: d.writer.commits.Load(),
	}
}

func (d *file) onReader(query string) (*sql.Stmt, error) {
	if damage := d.damaged.Load(); damage != nil {
		return nil, unavailable(damage)
	}
	if st, ok := d.stmts.Load(query); ok {
		return st.(*sql.Stmt), nil
	}

	st, err := d.reads.Prepare(forDriver(query))
	if err != nil {
		return nil, d.explain(fmt.Errorf("preparing query: %w", err))
	}

	// If two callers prepare the same query at the same time, the second uses the first one's
	// statement.
	if kept, loaded := d.stmts.LoadOrStore(query, st); loaded {
		_ = st.Close()
		return kept.(*sql.Stmt), nil
	}
	return st, nil
}

// A stmtTx runs queries as prepared statements, either within a change or on a read-only
// connection.
type stmtTx struct {
	prepare func(query string) (*sql.Stmt, error)
	explain func(error) error // converts errors of read-only queries; nil within a change
	memory  *memory           // nil if the Tx cannot remember values
}

func (t stmtTx) Query(ctx context.Context, query string, args ...any) (Rows, error) {
	st, err := t.ready(ctx, query, args)
	if err != nil {
		return nil, err
	}
	rows, err := st.Query(args...)
	if err == nil {
		return rows, nil
	}
	if t.explain != nil {
		err = t.explain(err)
	}
	return nil, err
}

func (t stmtTx) Row(ctx context.Context, query string, args ...any) Scanner {
	st, err := t.ready(ctx, query, args)
	if err != nil {
		return failed{err}
	}
	if t.explain != nil {
		return explained{st.QueryRow(args...), t.explain}
	}
	return st.QueryRow(args...)
}

// Shared locks nothing, because changes run one after another.
func (t stmtTx) Shared(ctx context.Context, query string, args ...any) Scanner {
	return t.Row(ctx, query, args...)
}

// Locked locks nothing either.
func (t stmtTx) Locked(ctx context.Context, query string, args ...any) Scanner {
	return t.Row(ctx, query, args...)
}

func (t stmtTx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := t.ready(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return st.Exec(args...)
}

func (t stmtTx) Later(ctx context.Context, query string, args ...any) error {
	_, err := t.Exec(ctx, query, args...)
	return err
}

func (t stmtTx) Recall() any {
	if t.memory == nil {
		return nil
	}
	return t.memory.recall()
}

func (t stmtTx) Remember(v any, last func(Tx) error) error {
	if t.memory == nil {
		return last(t)
	}
	t.memory.v, t.memory.last = v, last
	return nil
}

func (t stmtTx) ready(ctx context.Context, query string, args []any) (*sql.Stmt, error) {
	if t.explain != nil && ctx.Err() != nil { // a change continues even if ctx is done
		return nil, ctx.Err()
	}
	if err := checkText(args); err != nil {
		return nil, err
	}
	return t.prepare(query)
}

// explained is a row that passes its errors to explain.
type explained struct {
	row     *sql.Row
	explain func(error) error
}

func (e explained) Scan(dest ...any) error { return e.explain(e.row.Scan(dest...)) }

// failed is the row of a query that could not be run.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }
