package calls

import (
	"testing"
	"time"
)

// TestTransferAfterEnd shows that nobody rings for the transfer of a call that ended while the
// targets were being looked up.
func TestTransferAfterEnd(t *testing.T) {
	k := newBareCall(New(Config{}), "1")
	k.transfer = &transfer{by: k.legs[0], stays: k.legs[0]}
	k.state = Completed
	transferring{k}.continueTransfer(&route{ring: time.Minute}, nil)
	if k.route != nil {
		t.Error("the call rings the targets of a route, want nothing to happen")
	}
}
