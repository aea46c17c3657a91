// Package outages makes PostgreSQL and Redis fail under a working server: killed, hanging, full,
// locked, read-only or emptied. It checks the responses that clients get during the outage, and
// that the server keeps its promises afterwards.
//
// LONG=1 checks every login rather than some.
package outages

import (
	"os"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// checked returns how many logins are checked in the end, of a few thousand.
func checked() int {
	if os.Getenv("LONG") == "1" {
		return 1 << 30
	}
	return 40
}
