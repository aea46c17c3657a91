package nodes

import (
	"fmt"
	"os"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestMain chooses PostgreSQL and Redis where nothing else is chosen: files are
// for one node.
func TestMain(m *testing.M) {
	const backend = "SELVAGE_TEST_BACKEND"
	switch os.Getenv(backend) {
	case "":
		_ = os.Setenv(backend, "redis") // fails for no name of this kind
	case "sqlite":
		fmt.Fprintln(os.Stderr, "nodes cannot share files: choose another "+backend)
		os.Exit(1)
	}
	harness.Main(m)
}

// rows ends a test that is about rows alone on the cluster, where they are as on redis.
func rows(t *testing.T) {
	t.Helper()
	if os.Getenv("SELVAGE_TEST_BACKEND") == "cluster" {
		t.Skip("runs on redis")
	}
}

const loginScope = "openid profile email offline_access"

// two starts two nodes.
func two(t *testing.T) *harness.Nodes {
	t.Helper()
	return harness.StartNodes(t, nil, harness.Config{}, harness.Config{})
}
