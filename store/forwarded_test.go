package store

import (
	"testing"

	"github.com/selvage/selvage/calls"
)

func TestForwardedCalls(t *testing.T) { EachDatabase(t, testForwardedCalls) }

// testForwardedCalls shows that a ringing call can get a gateway, and that the call does not count
// against its own caps. Its record names the party who answered, and an erasure removes the payer.
func testForwardedCalls(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	r := callAt("p", s.now())
	r.State = calls.Ringing
	saveCalls(t, s, r)
	for range 2 { // the second time replaces the first
		r.Gateway, r.Payer, r.Lines = "g", g.SubscriberID, 2
		err := s.SaveOutbound(t.Context(), r, func(u calls.Usage) error {
			if u != (calls.Usage{}) {
				t.Errorf("SaveOutbound saw %+v, want nothing", u)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	u, err := s.OutboundUsage(t.Context(), "p", r.ID)
	if err != nil || u.Running != 2 || u.ProjectRunning != 2 || u.GatewayRunning != 2 {
		t.Errorf("OutboundUsage returned %+v, %v, want two lines", u, err)
	}

	dialed := r.To
	r.State, r.Answered, r.Lines = calls.InCall, s.now(), 1
	r.To = calls.Party{Name: "+4930123456", Address: "+4930123456"}
	saveCalls(t, s, r)
	found := func() calls.Record {
		t.Helper()
		f, err := s.FindCall(t.Context(), "p", r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}

	if f := found(); f.To != r.To || f.Lines != 1 || f.Payer != g.SubscriberID || f.Dialed != r.Dialed {
		t.Errorf("once it was answered, the record is %+v, want one to %+v", f, r.To)
	}
	r.To = dialed
	saveCalls(t, s, r)
	if f := found(); f.To.Address != "+4930123456" {
		t.Errorf("the record of an answered call is to %+v, want no change", f.To)
	}

	if _, err := s.EraseSubscriber(t.Context(), "p", eraser(g.SubscriberID), s.now()); err != nil {
		t.Fatal(err)
	}
	if f := found(); f.Payer != "" || f.Gateway != "g" {
		t.Errorf("after the erasure, the record is %+v, want no payer", f)
	}
}
