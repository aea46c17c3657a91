package callstest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store"
)

// newFaultyMeeting returns a meeting, and its store, which a test can break.
func newFaultyMeeting(t *testing.T) (*meeting, *faultyStore) {
	t.Helper()
	rows := &faultyStore{}
	m := newMeeting(t, func(c *calls.Config) {
		rows.Store = c.Store.(*store.Store)
		c.Store = rows
	})
	return m, rows
}

// audited returns the actions that were audited for a call, in order.
func (p pair) audited() (actions []string) {
	m := p.caller.meeting
	m.t.Helper()
	f := audit.Filter{ProjectID: m.project, Action: "call", Target: p.caller.leg}
	events := must[page.Page[audit.Event]](m.t)(m.store.ListAudit(m.t.Context(), f, page.Query{Size: 10})).Items
	for _, e := range events {
		actions = append(actions, e.Action)
	}
	slices.Reverse(actions)
	return actions
}

// TestUnwrittenTransfer shows that the result of a transfer is written once the database works again,
// while the call continues.
func TestUnwrittenTransfer(t *testing.T) {
	m, rows := newFaultyMeeting(t)
	p := m.talk("ada", "bob")
	rows.broken.Store(true)
	cleo := p.transfers("cleo")
	rows.broken.Store(false)

	eventually(t, "the transfer to be written", func() bool { return p.call().CalleeLeg == cleo.leg })
	if got := p.call().To.Address; got != "/private/cleo" {
		t.Errorf("the callee is %s, want /private/cleo", got)
	}
	if got := p.call().State; got != calls.InCall {
		t.Errorf("the call is %s, want %s", got, calls.InCall)
	}
}

// TestUnwrittenMove shows that the move of a call into a room is written once the database works again,
// while the call continues.
func TestUnwrittenMove(t *testing.T) {
	m, rows := newFaultyMeeting(t)
	p := m.talk("ada", "bob")
	rows.broken.Store(true)
	if err := p.caller.move(lobby); err != nil {
		t.Fatalf("moving into the room: %v", err)
	}
	rows.broken.Store(false)

	session := m.lastJoined(p.caller).RoomSession
	eventually(t, "the move to be written", func() bool { return p.call().RoomSession == session })
	if p.call().Joined.IsZero() {
		t.Error("the record does not contain when the call joined the room")
	}
}

// An unsavedControls is a store whose first attempt to write the controls of a call fails.
type unsavedControls struct {
	*store.Store
	asked atomic.Int32
}

func (s *unsavedControls) SaveControls(ctx context.Context, r calls.Record) error {
	if s.asked.Add(1) == 1 {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveControls(ctx, r)
}

// TestUnwrittenMute shows that a mute is written once the database works again. Otherwise, the member
// would not be muted after the loss of its node.
func TestUnwrittenMute(t *testing.T) {
	m := newMeeting(t, func(c *calls.Config) { c.Store = &unsavedControls{Store: c.Store.(*store.Store)} })
	p := m.talk("ada", "bob")
	p.caller.do(calls.Command{Op: calls.Mute, Media: []calls.Kind{calls.Audio}})
	eventually(t, "the mute to be written", func() bool { return p.call().CallerControls&calls.AudioMuted != 0 })
}

// TestUnwrittenMuteWhileRinging shows that the mute of a caller is written once the database works again,
// even if the callee has not answered by then.
func TestUnwrittenMuteWhileRinging(t *testing.T) {
	m := newMeeting(t, func(c *calls.Config) { c.Store = &unsavedControls{Store: c.Store.(*store.Store)} })
	p := m.ring("ada", "bob")
	p.caller.do(calls.Command{Op: calls.Mute, Media: []calls.Kind{calls.Audio}})
	eventually(t, "the mute to be written", func() bool { return p.call().CallerControls&calls.AudioMuted != 0 })
}

// TestUnwrittenChanges shows that all changes of a call are written in order, if the database is
// unavailable from before the answer until after the end of the call.
func TestUnwrittenChanges(t *testing.T) {
	m, rows := newFaultyMeeting(t)
	go m.calls.Run(t.Context())
	p := m.ring("ada", "bob")
	rows.broken.Store(true)
	p.callee.do(calls.Command{Op: calls.Answer, SDP: offer})
	cleo := p.transfers("cleo")
	if err := p.caller.move(lobby); err != nil {
		t.Fatalf("moving into the room: %v", err)
	}
	if err := cleo.move(""); err != nil {
		t.Fatalf("moving out of the room: %v", err)
	}
	cleo.do(calls.Command{Op: calls.Hangup})
	rows.broken.Store(false)

	eventually(t, "the end of the call to be written", func() bool { return !p.call().Ended.IsZero() })
	if got := p.call().To.Address; got != "/private/cleo" {
		t.Errorf("the callee is %s, want /private/cleo", got)
	}
	if got := p.call().RoomSession; got != "" {
		t.Errorf("the call is in session %s, want none", got)
	}
	want := []string{"call.transferred", "call.moved_in", "call.moved_out", "call.ended"}
	if got := p.audited(); !slices.Equal(got, want) {
		t.Errorf("the audit trail contains %v, want %v", got, want)
	}
}
