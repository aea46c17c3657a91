package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/test/servers"
)

// A script's T stands where a test would for what starts servers.
type scriptT struct{ *testscript.Env }

type scriptTKey struct{}

func (t scriptT) Helper() {}

func (t scriptT) Fatalf(format string, args ...any) { t.T().Fatal(fmt.Sprintf(format, args...)) }

func (t scriptT) Skipf(format string, args ...any) { t.T().Skip(fmt.Sprintf(format, args...)) }

func (t scriptT) Cleanup(do func()) { t.Defer(do) }

// setBackend returns a script rows and sessions of its own on the backend that the
// environment chooses.
func setBackend(e *testscript.Env) {
	t := scriptT{e}
	e.Values[scriptTKey{}] = t
	setAll(e.Setenv, servers.Backend(t))
}

// onBackend lets a line hold for one backend, as in [sqlite] or [!sqlite].
func onBackend(name string) func(condition string) (bool, error) {
	return func(condition string) (bool, error) {
		if !slices.Contains(servers.Backends, condition) {
			return false, fmt.Errorf("there is no backend %q", condition)
		}
		return condition == name, nil
	}
}

// cmdPort sets variables to ports that stay free for whoever is to listen there.
func cmdPort(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Setenv(name, strconv.Itoa(servers.FreePort(ts.Value(scriptTKey{}).(scriptT))))
	}
}

// cmdFresh returns what follows rows and sessions that no one has used.
func cmdFresh(ts *testscript.TestScript, _ bool, _ []string) {
	setAll(ts.Setenv, servers.Backend(ts.Value(scriptTKey{}).(scriptT)))
}
