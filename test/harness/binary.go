package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// build builds selvage once a process, or takes the one that SELVAGE_BINARY
// names. The directory is the second result, to be removed at the end.
var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("SELVAGE_BINARY"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "selvage-test-")
	if err != nil {
		return "", fmt.Errorf("building selvage: %w", err)
	}
	path := filepath.Join(dir, "selvage")
	cmd := exec.Command("go", "build", "-o", path, "github.com/selvage/selvage/cmd/selvage")
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("building selvage: %w\n%s", err, out)
	}
	built = dir
	return path, nil
})

// built is the directory of the binary, where we made one.
var built string

// Binary returns the path of the binary under test.
func Binary(t T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return path
}

// Main runs a package's tests and removes the binary built for them; a
// package's TestMain calls it.
func Main(m interface{ Run() int }) {
	code := m.Run()
	for _, fault := range documented.Faults() {
		fmt.Fprintln(os.Stderr, fault)
		code = 1
	}
	Sweep()
	os.Exit(code)
}

// Sweep removes the binary that was built and ends the server that was shared, and
// what lasted as long.
func Sweep() {
	if shared != nil {
		shared.end()
	}
	for _, end := range slices.Backward(endings) {
		end()
	}
	if built != "" {
		_ = os.RemoveAll(built)
	}
}
