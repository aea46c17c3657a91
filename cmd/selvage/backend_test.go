package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/test/servers"
)

// A scriptT lets a script be used where package servers expects a testing.T.
type scriptT struct{ *testscript.Env }

// scriptTKey is the key under which a script keeps its scriptT.
type scriptTKey struct{}

func (t scriptT) Helper() {}

func (t scriptT) Fatalf(format string, args ...any) { t.T().Fatal(fmt.Sprintf(format, args...)) }

func (t scriptT) Skipf(format string, args ...any) { t.T().Skip(fmt.Sprintf(format, args...)) }

func (t scriptT) Cleanup(do func()) { t.Defer(do) }

// setBackend sets up a database and sessions for a script, on the backend that the
// environment selects.
func setBackend(e *testscript.Env) {
	t := scriptT{e}
	e.Values[scriptTKey{}] = t
	setAll(e.Setenv, servers.Backend(t))
}

// onBackend returns a condition that holds on one backend, as in [sqlite] or [!sqlite].
func onBackend(name string) func(condition string) (bool, error) {
	return func(condition string) (bool, error) {
		if !slices.Contains(servers.Backends, condition) {
			return false, fmt.Errorf("unknown backend %q", condition)
		}
		return condition == name, nil
	}
}

// cmdPort sets each named variable to a free port, which no other test gets.
func cmdPort(ts *testscript.TestScript, _ bool, args []string) {
	t := ts.Value(scriptTKey{}).(scriptT)
	for _, name := range args {
		ts.Setenv(name, strconv.Itoa(servers.FreePort(t)))
	}
}

// cmdFresh makes later commands use a new database and new sessions.
func cmdFresh(ts *testscript.TestScript, _ bool, _ []string) {
	t := ts.Value(scriptTKey{}).(scriptT)
	setAll(ts.Setenv, servers.Backend(t))
}
