package main

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// holdKey is the key under which a script keeps its lock.
type holdKey struct{}

// cmdSQL runs SQL directly, not through selvage: in an SQLite file, which it creates if needed, or
// in the PostgreSQL database at a URL.
func cmdSQL(ts *testscript.TestScript, _ bool, args []string) {
	driver, name := "pgx", args[0]
	if !strings.HasPrefix(name, "postgres") {
		driver, name = "sqlite", "file:"+ts.MkAbs(name)
	}
	db, err := sql.Open(driver, name)
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(args[1])
	ts.Check(err)
}

// cmdHold locks an SQLite file for writing, until the command release or the end of the script.
func cmdHold(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	conn, err := db.Conn(context.Background())
	ts.Check(err)
	_, err = conn.ExecContext(context.Background(), `BEGIN IMMEDIATE`)
	ts.Check(err)
	release := func() {
		_ = conn.Close()
		_ = db.Close()
	}
	ts.Defer(release)
	ts.Value(holdKey{}).(*hold).release = release
}

// cmdRelease releases the lock of the last hold.
func cmdRelease(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Value(holdKey{}).(*hold).release()
}

// A hold is the lock that a script holds.
type hold struct{ release func() }

// orInstalled adds two conditions to others. [namespaces] is true if this account may create namespaces.
// [modules] is true if npm has installed the clients in test/clients.
func orInstalled(others func(string) (bool, error)) func(string) (bool, error) {
	mayUnshare := sync.OnceValue(func() bool { return exec.Command("unshare", "-rm", "true").Run() == nil })
	return func(condition string) (bool, error) {
		switch condition {
		case "namespaces":
			return mayUnshare(), nil
		case "modules":
			_, err := os.Stat("../../test/clients/node_modules/openid-client")
			return err == nil, nil
		}
		return others(condition)
	}
}
