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
	ctx := t.Context()
	answered := time.Now().UTC().Truncate(time.Second).Add(-2 * time.Hour)
	talks := callAt("p", answered)
	talks.State, talks.Answered = calls.InCall, answered
	talks.CalleeLeg = newID()
	saveCalls(t, s, talks)

	// Alice, who dialed, transfers Bob to a number at her cost.
	out := talks
	out.Gateway = "g"
	out.Payer = "alice"
	out.Lines = 1
	out.OutboundFrom = answered.Add(110 * time.Minute)
	if err := s.SaveOutbound(ctx, out, func(calls.Usage) error { return nil }); err != nil {
		t.Fatal(err)
	}

	number := calls.Party{Name: "+4930123456", Address: "+4930123456"}
	out.From, out.To = talks.To, number
	out.CallerLeg, out.CalleeLeg = talks.CalleeLeg, newID()
	if err := s.SaveTransfer(ctx, out, calls.Transfer{By: talks.From, Swapped: true}); err != nil {
		t.Fatal(err)
	}

	wantCall(t, s, "after the transfer", out)
	for _, leg := range []string{out.ID, out.CallerLeg, out.CalleeLeg} {
		got, err := s.FindLeg(ctx, "p", leg)
		if err != nil {
			t.Fatal(err)
		}
		if got != out {
			t.Errorf("the call with the leg %s is %+v, want %+v", leg, got, out)
		}
	}

	usage, err := s.OutboundUsage(ctx, "p", talks.ID)
	if err != nil {
		t.Fatal(err)
	}
	if usage.Running != 1 {
		t.Errorf("%d calls are running, want 1", usage.Running)
	}
	if usage.Hourly != 1 {
		t.Errorf("%d calls began in the last hour, want 1", usage.Hourly)
	}
	if usage.Daily < 10*time.Minute || usage.Daily > 20*time.Minute {
		t.Errorf("a call transferred ten minutes ago counts as %v, want ten to twenty minutes", usage.Daily)
	}

	// A failed transfer changes only the gateway, the payer and the time since which the call costs.
	unwritten := talks
	unwritten.To.Name = "not written"
	failure := calls.Transfer{By: talks.To, Cause: calls.UserBusy, Refusal: "a rule"}
	if err := s.SaveTransfer(ctx, unwritten, failure); err != nil {
		t.Fatal(err)
	}

	free := out
	free.Gateway = ""
	free.Payer = ""
	free.OutboundFrom = time.Time{}
	wantCall(t, s, "after a failed transfer", free)

	trail, err := s.ListAudit(ctx, audit.Filter{Target: talks.ID}, page.Query{Size: 9})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trail.Items); n != 2 {
		t.Fatalf("the audit trail has %d events, want one for each of the two transfers: %+v", n, trail.Items)
	}
	newest, oldest := trail.Items[0], trail.Items[1]
	wantTransferEvent(t, newest, "call.transfer_failed", "bob", "reason", "a rule")
	wantTransferEvent(t, oldest, "call.transferred", "alice", "gateway", "g")

	elsewhere := out
	elsewhere.Node = "other"
	if err := s.SaveTransfer(ctx, elsewhere, calls.Transfer{By: talks.To}); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("a transfer by another node = %v, want %v", err, calls.ErrTaken)
	}
	over := ended(free, calls.NormalClearing, true)
	over.Answered = free.Answered
	saveCalls(t, s, over)
	if err := s.SaveTransfer(ctx, out, calls.Transfer{By: talks.To}); err != nil {
		t.Errorf("transferring a call that has ended = %v, want nil", err)
	}
}

// wantCall fails the test unless the record of a call is want.
func wantCall(t *testing.T, s *Store, when string, want calls.Record) {
	t.Helper()
	got, err := s.FindCall(t.Context(), "p", want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s, the call is %+v, want %+v", when, got, want)
	}
}

// wantTransferEvent fails the test unless an event of the audit trail has these properties.
func wantTransferEvent(t *testing.T, e audit.Event, action, actor, detail, value string) {
	t.Helper()
	if e.Action != action {
		t.Errorf("the action is %q, want %q", e.Action, action)
	}
	if e.Actor.ID != actor {
		t.Errorf("the actor of %s is %q, want %q", action, e.Actor.ID, actor)
	}
	if got := e.Detail[detail]; got != value {
		t.Errorf("the %s of %s is %q, want %q", detail, action, got, value)
	}
}
