package contract

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
