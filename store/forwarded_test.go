package store

import (
	"testing"

	"github.com/selvage/selvage/calls"
)

func TestForwardedCalls(t *testing.T) { EachDatabase(t, testForwardedCalls) }

// testForwardedCalls shows that a ringing call can be forwarded through a gateway, and that the
// call does not count against its own limits. Its record names the party who answered. If the payer is
// erased, the record no longer names a payer.
func testForwardedCalls(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	r := callAt("p", s.now())
	r.State = calls.Ringing
	saveCalls(t, s, r)
	for range 2 { // the second time replaces the first
		r.Gateway = "g"
		r.Payer = g.SubscriberID
		r.Lines = 2
		wantNone := func(u calls.Usage) error {
			if u != (calls.Usage{}) {
				t.Errorf("SaveOutbound passes the usage %+v, want none", u)
			}
			return nil
		}
		if err := s.SaveOutbound(t.Context(), r, wantNone); err != nil {
			t.Fatal(err)
		}
	}

	usage, err := s.OutboundUsage(t.Context(), "p", r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if usage.Running != 2 {
		t.Errorf("the payer has %d lines, want 2", usage.Running)
	}
	if usage.ProjectRunning != 2 {
		t.Errorf("the project has %d lines, want 2", usage.ProjectRunning)
	}
	if usage.GatewayRunning != 2 {
		t.Errorf("the gateway has %d lines, want 2", usage.GatewayRunning)
	}

	dialed := r.To
	number := calls.Party{Name: "+4930123456", Address: "+4930123456"}
	r.State, r.Answered = calls.InCall, s.now()
	r.Lines = 1
	r.To = number
	saveCalls(t, s, r)
	found := func() calls.Record {
		t.Helper()
		f, err := s.FindCall(t.Context(), "p", r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}

	answered := found()
	if answered.To != number {
		t.Errorf("once it was answered, the call is to %+v, want %+v", answered.To, number)
	}
	if answered.Lines != 1 {
		t.Errorf("once it was answered, the call has %d lines, want 1", answered.Lines)
	}
	if answered.Payer != g.SubscriberID {
		t.Errorf("once it was answered, the payer is %q, want %q", answered.Payer, g.SubscriberID)
	}
	if answered.Dialed != r.Dialed {
		t.Errorf("once it was answered, the dialed address is %q, want %q", answered.Dialed, r.Dialed)
	}

	r.To = dialed
	saveCalls(t, s, r)
	if to := found().To; to.Address != number.Address {
		t.Errorf("the record of an answered call is to %+v, want no change", to)
	}

	if _, err := s.EraseSubscriber(t.Context(), "p", erasureOf(g.SubscriberID), s.now()); err != nil {
		t.Fatal(err)
	}
	erased := found()
	if erased.Payer != "" {
		t.Errorf("after the erasure, the payer is %q, want none", erased.Payer)
	}
	if erased.Gateway != "g" {
		t.Errorf("after the erasure, the gateway is %q, want g", erased.Gateway)
	}
}
