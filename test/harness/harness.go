// Package harness runs the built binary for the suites under test/ and for the
// benchmarks, and plays the browser, the client and the operator that need it.
//
// Nothing is mocked: each [Server] is a process of its own with a temporary data
// directory on loopback, and everything in it is made by the command line or
// over HTTP, as its users would. A step that cannot be taken ends the test
// through its [T], so that the tests read as what happens when all is well.
package harness

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/selvage/selvage/test/servers"
)

// A T is the part of testing.TB that the harness needs; a program that is no
// test can bring its own.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
}

// Need ends the test unless every command is on the PATH: with a failure where
// all suites must run (CI or SELVAGE_TEST_ALL is set), else by skipping it.
func Need(t T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := exec.LookPath(c); err != nil {
			Missing(t, fmt.Sprintf("the command %s", c))
		}
	}
}

// Missing ends the test for want of something, as [Need] does.
func Missing(t T, what string) {
	t.Helper()
	servers.Missing(t, what)
}

// NotStorage ends a test that has little to do with storage and takes long, as in a
// browser, on backends which differ from others in their storage alone: it runs with
// PostgreSQL and Redis, and on SQLite unless SELVAGE_TEST_BACKENDS, which names all that
// this run is to have, says that it comes by there.
func NotStorage(t T) {
	t.Helper()
	switch name := servers.BackendName(t); {
	case name == "postgres" || name == "cluster":
		t.Skipf("runs on redis, or on sqlite")
	case name == "sqlite" && slices.Contains(strings.Fields(os.Getenv("SELVAGE_TEST_BACKENDS")), "redis"):
		t.Skipf("runs on redis")
	}
}

// OneBackend ends a test that has nothing to do with backends and takes long: it runs on
// SQLite alone.
func OneBackend(t T) {
	t.Helper()
	if name := servers.BackendName(t); name != "sqlite" {
		t.Skipf("runs on sqlite")
	}
}

// Rows ends a test that is about rows alone on backends that keep them as another does:
// it runs on SQLite and with sessions beside the rows, or with them in Redis where
// SELVAGE_TEST_BACKENDS, which names all that this run is to have, leaves that out.
func Rows(t T) {
	t.Helper()
	switch name := servers.BackendName(t); {
	case name == "cluster":
		t.Skipf("runs on redis")
	case name == "redis" && slices.Contains(strings.Fields(os.Getenv("SELVAGE_TEST_BACKENDS")), "postgres"):
		t.Skipf("runs on postgres")
	}
}

// Debian returns the files of an installed Debian package whose path ends in
// suffix, or ends the test as [Need] does.
func Debian(t T, pkg, suffix string) []string {
	t.Helper()
	list, err := exec.Command("dpkg", "-L", pkg).Output()
	if err != nil {
		Missing(t, "the Debian package "+pkg)
	}
	var files []string
	for _, path := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		if strings.HasSuffix(path, suffix) {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		t.Fatalf("dpkg -L %s lists no file that ends in %s", pkg, suffix)
	}
	return files
}
