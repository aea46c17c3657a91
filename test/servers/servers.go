// Package servers starts PostgreSQL and Redis for tests: real ones, on free
// ports of 127.0.0.1, with their data in a temporary directory.
//
// [Postgres], [Redis], [Cluster] and [Sentinel] give the URL of something empty on
// a server which the test process starts when it is first asked for, or which the
// variables SELVAGE_TEST_POSTGRES, SELVAGE_TEST_REDIS, SELVAGE_TEST_CLUSTER and
// SELVAGE_TEST_SENTINEL name: `go run ./test/servers/run -- COMMAND` starts all of
// them once, for all that COMMAND runs. [OwnPostgres] and the like start a server
// for one test, which may stop it, kill it, pause it and start it again.
//
// Whatever was started ends with the test process, however that ends. Services
// that the machine runs anyway are never used. Without the programs a test is
// skipped, or fails where all must run; see [Missing].
package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// A T is the part of testing.TB that is needed here; a program that is no test
// can bring its own.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
}

// Missing ends the test for want of something: with a failure where all suites
// must run (CI=true or SELVAGE_TEST_ALL=1), else by skipping it.
func Missing(t T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("SELVAGE_TEST_ALL") == "1" {
		t.Fatalf("%s is missing: run test/setup.sh", what)
	}
	t.Skipf("%s is missing: run test/setup.sh to have this test", what)
}

// A missingError names a program that is not installed.
type missingError string

func (e missingError) Error() string { return "there is no " + string(e) }

// check ends the test if a server did not start.
func check(t T, err error) {
	t.Helper()
	var program missingError
	if errors.As(err, &program) {
		Missing(t, "the command "+string(program))
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// program finds a command where Debian puts those of PostgreSQL, the newest version
// first, or on the PATH. SELVAGE_TEST_SERVERS=none has it find none.
func program(name string) (string, error) {
	if os.Getenv("SELVAGE_TEST_SERVERS") == "none" {
		return "", missingError(name + ", since SELVAGE_TEST_SERVERS is none")
	}
	// Debian's psql in the PATH is a script in Perl, which takes longer than psql itself.
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", name, err)
	}
	if len(found) > 0 {
		return slices.Max(found), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", missingError(name)
	}
	return path, nil
}
