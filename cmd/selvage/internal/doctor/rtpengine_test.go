package doctor

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/test/servers"
)

// TestRTPEngine shows that doctor checks each rtpengine.
func TestRTPEngine(t *testing.T) {
	running := servers.OwnRTPEngine(t)
	e := &Examination{Config: config.Config{Services: config.AllServices, ListenMedia: "127.0.0.1:0"}}
	missing := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
	e.Config.Calls.RTPEngine = []string{running.Address, missing}
	found := callChecks{e}.rtpengine(t.Context())
	if len(found) != 2 {
		t.Fatalf("doctor found %+v, want a finding for each of the 2 addresses", found)
	}
	wantVerdict(t, "a running rtpengine", found[0], Fine)
	wantVerdict(t, "a missing rtpengine", found[1], Broken)
}
