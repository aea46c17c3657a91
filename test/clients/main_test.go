package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
