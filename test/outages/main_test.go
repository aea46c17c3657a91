// Package outages takes PostgreSQL and Redis away from a server at work: killed,
// hanging, full, locked, read-only, emptied. It looks at what clients were told
// meanwhile, and at what was promised to them afterwards.
//
// LONG=1 looks at every login that was made, not at some.
package outages

import (
	"os"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// checked is how many logins are looked at in the end, of a few thousand.
func checked() int {
	if os.Getenv("LONG") == "1" {
		return 1 << 30
	}
	return 40
}
