// Package outages makes PostgreSQL and Redis fail under a working server. They are killed, paused,
// full, locked, read-only or emptied. The package checks the responses during the outage, and
// checks that the server keeps its promises afterwards.
//
// LONG=1 checks every login instead of some.
package outages

import (
	"os"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// checked returns how many of a few thousand logins are checked at the end.
func checked() int {
	if os.Getenv("LONG") == "1" {
		return 1 << 30
	}
	return 40
}
