package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// build builds selvage, once per process, and returns the binary's path. If SELVAGE_BINARY is set,
// build returns that path instead.
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

// built is the directory of the binary that build has built, or "" if it has built none.
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

// Main runs a package's tests and then removes the binary built for them. It fails if any response
// did not match the OpenAPI document. A package's TestMain calls Main.
func Main(m interface{ Run() int }) {
	code := m.Run()
	for _, fault := range documented.Faults() {
		fmt.Fprintln(os.Stderr, fault)
		code = 1
	}
	Sweep()
	os.Exit(code)
}

// Sweep stops the shared server, runs the cleanups of the process in reverse order, and removes the
// binary that was built.
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
