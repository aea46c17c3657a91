package callstest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/selvage/selvage/calls"
)

// TestPhoneOfLostNode shows that a call does not wait for a phone that has registered at a node that is
// gone. A node that answers is not gone, even if it has no entry in the session store.
func TestPhoneOfLostNode(t *testing.T) {
	for node, want := range map[string]calls.EventKind{
		"node":   calls.Invited,
		"second": calls.Invited,
		"gone":   calls.HungUp,
	} {
		t.Run(node, func(t *testing.T) {
			phone := calls.Phone{
				Codecs: []string{"PCMU"},
				Socket: calls.Socket{Node: node, ID: "phone", Phone: netip.MustParseAddr("127.0.0.1")},
			}
			m, _ := twoNodes(t, func(c *calls.Config) {
				c.Phones = func(context.Context, string, string) ([]calls.Phone, error) {
					return []calls.Phone{phone}, nil
				}
			})

			caller, callee := m.subscriber("ada"), m.subscriber("bob")
			told := caller
			if want == calls.Invited {
				told = callee
				told.Socket = phone.Socket
			}
			caller.do(calls.Command{Op: calls.Invite, To: "/private/bob", SDP: offer})
			eventually(t, string(want), func() bool { return len(m.received(want, told)) > 0 })
			e := m.received(want, told)[0]
			if want == calls.HungUp && e.Cause != calls.UserNotRegistered {
				t.Errorf("the call ended with %s, want %s", e.Cause.Text, calls.UserNotRegistered.Text)
			}
		})
	}
}
