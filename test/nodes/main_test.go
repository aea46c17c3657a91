package nodes

import (
	"fmt"
	"os"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestMain chooses PostgreSQL and Redis if no backend is chosen. It rejects SQLite, which supports
// only one node.
func TestMain(m *testing.M) {
	const backend = "SELVAGE_TEST_BACKEND"
	switch os.Getenv(backend) {
	case "":
		_ = os.Setenv(backend, "redis") // cannot fail for this name
	case "sqlite":
		fmt.Fprintln(os.Stderr, "nodes cannot share files: choose another "+backend)
		os.Exit(1)
	}
	harness.Main(m)
}

// rows skips a test that concerns only the database when it runs on the backend cluster, because
// the backend redis has the same database.
func rows(t *testing.T) {
	t.Helper()
	if os.Getenv("SELVAGE_TEST_BACKEND") == "cluster" {
		t.Skip("runs on redis")
	}
}

const loginScope = "openid profile email offline_access"

// two starts two nodes with the same configuration.
func two(t *testing.T) *harness.Nodes {
	t.Helper()
	return harness.StartNodes(t, nil, harness.Config{}, harness.Config{})
}
