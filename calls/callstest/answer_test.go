package callstest

import (
	"errors"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// TestIncompatibleAnswer shows the cause with which a call ends if its callee answers without
// encryption.
func TestIncompatibleAnswer(t *testing.T) {
	m := newMeeting(t)
	p := m.ring("ada", "bob")
	plain := strings.ReplaceAll(offer, "a=fingerprint", "a=x")
	if err := p.callee.try(calls.Command{Op: calls.Answer, SDP: plain}); !errors.Is(err, problem.Invalid) {
		t.Fatalf("answering without encryption = %v, want %v", err, problem.Invalid)
	}
	m.wasSent(p.caller, calls.HungUp, 1)
	if got := p.call().Cause; got != calls.Incompatible {
		t.Errorf("the call ended with %v, want %v", got, calls.Incompatible)
	}
	if got := p.call().Result(); got != calls.Failed {
		t.Errorf("the result of the call is %s, want %s", got, calls.Failed)
	}
}
