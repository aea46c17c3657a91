package store

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// TestSaveTransfer shows what a transfer changes in the record of a call. The usage of gateways is
// counted from the transfer on, and the transfer is audited.
func TestSaveTransfer(t *testing.T) { EachDatabase(t, testSaveTransfer) }

func testSaveTransfer(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, at := t.Context(), time.Now().UTC().Truncate(time.Second).Add(-2*time.Hour)
	talks := callAt("p", at)
	talks.State, talks.Answered, talks.CalleeLeg = calls.InCall, at, newID()
	talks.From.SubscriberID, talks.To.SubscriberID = "alice", "bob"
	saveCalls(t, s, talks)

	// Alice, who dialed, transfers bob to a number at her cost.
	out := talks
	out.Gateway, out.Payer, out.Lines = "g", "alice", 1
	out.OutboundFrom = at.Add(110 * time.Minute)
	if err := s.SaveOutbound(ctx, out, func(calls.Usage) error { return nil }); err != nil {
		t.Fatal(err)
	}

	number := calls.Party{Name: "+4930123456", Address: "+4930123456"}
	out.From, out.To = talks.To, number
	out.CallerLeg, out.CalleeLeg = talks.CalleeLeg, newID()
	if err := s.SaveTransfer(ctx, out, calls.Transfer{By: talks.From, Swapped: true}); err != nil {
		t.Fatal(err)
	}

	if got, err := s.FindCall(ctx, "p", talks.ID); err != nil || got != out {
		t.Errorf("after the transfer, the call is %+v, %v, want %+v", got, err, out)
	}
	for _, leg := range []string{out.ID, out.CallerLeg, out.CalleeLeg} {
		if got, err := s.FindLeg(ctx, "p", leg); err != nil || got != out {
			t.Errorf("the call with the leg %s is %+v, %v, want %+v", leg, got, err, out)
		}
	}

	u, err := s.OutboundUsage(ctx, "p", talks.ID)
	if err != nil || u.Running != 1 || u.Hourly != 1 || u.Daily < 10*time.Minute || u.Daily > 20*time.Minute {
		t.Errorf("the usage of a call transferred ten minutes ago is %+v, %v, want one call and ten minutes", u, err)
	}

	// A failed transfer changes only the cost of the call.
	failed := talks
	failed.To.Name = "not written"
	nobody := calls.Transfer{By: talks.To, Cause: calls.UserBusy, Refusal: "a rule"}
	if err := s.SaveTransfer(ctx, failed, nobody); err != nil {
		t.Fatal(err)
	}

	want := out
	want.Gateway, want.Payer, want.OutboundFrom = "", "", time.Time{}
	if got, err := s.FindCall(ctx, "p", talks.ID); err != nil || got != want {
		t.Errorf("after a failed transfer, the call is %+v, %v, want %+v", got, err, want)
	}

	trail, err := s.ListAudit(ctx, audit.Filter{Target: talks.ID}, page.Query{Size: 9})
	if err != nil || len(trail.Items) != 2 {
		t.Fatalf("the audit trail has %+v, %v, want both transfers", trail.Items, err)
	}

	e := trail.Items[0]
	if e.Action != "call.transfer_failed" || e.Actor.ID != "bob" || e.Detail["reason"] != "a rule" {
		t.Errorf("the event of the failed transfer is %+v, want bob's, with the reason", e)
	}

	e = trail.Items[1]
	if e.Action != "call.transferred" || e.Actor.ID != "alice" || e.Detail["gateway"] != "g" {
		t.Errorf("the event of the transfer is %+v, want alice's, with the gateway", e)
	}

	elsewhere := out
	elsewhere.Node = "other"
	if err := s.SaveTransfer(ctx, elsewhere, calls.Transfer{By: talks.To}); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("a transfer by another node = %v, want %v", err, calls.ErrTaken)
	}
	over := ended(want, calls.NormalClearing, true)
	over.Answered = want.Answered
	saveCalls(t, s, over)
	if err := s.SaveTransfer(ctx, out, calls.Transfer{By: talks.To}); err != nil {
		t.Errorf("transferring a call that has ended = %v, want nothing to happen", err)
	}
}
