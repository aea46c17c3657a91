// Package harness runs the built binary for the suites under test/ and for the benchmarks. It acts
// as the browser, the OAuth client and the operator.
//
// Nothing is mocked: each [Server] is a separate process on loopback with a temporary data
// directory. Tests create all data with the command line or over HTTP, as users would. A step that
// fails ends the test through its [T], so a test reads as a sequence of steps that succeed.
package harness

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/selvage/selvage/test/servers"
)

// A T is the part of testing.TB that the harness needs. Programs that are not tests can implement
// it themselves; see [Program].
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

// Need ends the test unless every command is on the PATH. The test fails where all suites
// must run (CI=true or SELVAGE_TEST_ALL=1) and is skipped elsewhere.
func Need(t T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := exec.LookPath(c); err != nil {
			Missing(t, fmt.Sprintf("the command %s", c))
		}
	}
}

// Missing ends the test because something that it needs is missing. It fails or skips the test in
// the same way as [Need].
func Missing(t T, what string) {
	t.Helper()
	servers.Missing(t, what)
}

// NotStorage skips a slow test that hardly depends on storage, such as a test in a browser, on most
// backends. The test runs on the backend redis. It also runs on sqlite, unless
// SELVAGE_TEST_BACKENDS, the list of backends in this run, contains redis.
func NotStorage(t T) {
	t.Helper()
	switch name := servers.BackendName(t); {
	case name == "postgres" || name == "cluster":
		t.Skipf("runs on redis, or on sqlite")
	case name == "sqlite" && slices.Contains(strings.Fields(os.Getenv("SELVAGE_TEST_BACKENDS")), "redis"):
		t.Skipf("runs on redis")
	}
}

// OneBackend skips a slow test that does not depend on the backend. The test runs only on SQLite.
func OneBackend(t T) {
	t.Helper()
	if name := servers.BackendName(t); name != "sqlite" {
		t.Skipf("runs on sqlite")
	}
}

// Rows skips a test that concerns only the database if another backend has the same database. The
// test runs on the backends sqlite and postgres. It runs on redis unless SELVAGE_TEST_BACKENDS, the
// list of backends in this run, contains postgres. It never runs on cluster.
func Rows(t T) {
	t.Helper()
	switch name := servers.BackendName(t); {
	case name == "cluster":
		t.Skipf("runs on postgres, or on redis")
	case name == "redis" && slices.Contains(strings.Fields(os.Getenv("SELVAGE_TEST_BACKENDS")), "postgres"):
		t.Skipf("runs on postgres")
	}
}

// Debian returns the files of an installed Debian package whose paths end in suffix. If the package
// is missing, it ends the test in the same way as [Need].
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
