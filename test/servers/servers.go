// Package servers starts real PostgreSQL, Redis, S3 and rtpengine servers for tests, on free ports
// of 127.0.0.1, with their data in a temporary directory. [Postgres], [Redis], [Cluster] and
// [Sentinel] return URLs of shared servers. A shared server starts when the test process first
// needs it. If SELVAGE_TEST_POSTGRES, SELVAGE_TEST_REDIS, SELVAGE_TEST_CLUSTER or
// SELVAGE_TEST_SENTINEL names a running server, that server is used instead. `go run
// ./test/servers/run -- COMMAND` starts all of them once and runs COMMAND with them. [OwnPostgres]
// and its counterparts start a server for a single test, which may stop, kill, pause and restart
// the server.
//
// On Linux, all servers end with the test process, however it ends. Servers that already run on the
// machine are not used unless a variable names them. If a program is not installed, the tests that
// need it are skipped or, where all tests must run, fail; see [Missing].
package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// A T is the part of testing.TB that this package needs. Programs that are not tests can implement
// it themselves.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
}

// Missing ends the test because a requirement is missing. The test fails where all suites must
// run (CI=true or SELVAGE_TEST_ALL=1) and is skipped elsewhere.
func Missing(t T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("SELVAGE_TEST_ALL") == "1" {
		t.Fatalf("%s is missing: run test/setup.sh", what)
	}
	t.Skipf("%s is missing: run test/setup.sh to enable this test", what)
}

// A missingError names a program that is not installed.
type missingError string

func (e missingError) Error() string { return "there is no " + string(e) }

// check ends the test if err is not nil. It calls [Missing] for a program that is not installed.
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

// program returns the path of a command. It prefers the newest version in Debian's PostgreSQL
// directories to a command on the PATH. With SELVAGE_TEST_SERVERS=none, no command is found.
func program(name string) (string, error) {
	if os.Getenv("SELVAGE_TEST_SERVERS") == "none" {
		return "", missingError(name + ", since SELVAGE_TEST_SERVERS is none")
	}
	// Debian's psql on the PATH is a Perl wrapper, which is slower than psql itself.
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
