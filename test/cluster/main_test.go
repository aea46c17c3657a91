package cluster

import (
	"os"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// long reports whether the tests run as long as a release requires.
func long() bool { return os.Getenv("LONG") == "1" }
