package callstest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// A faultyStore is a store that fails to write calls and room sessions while it is broken.
type faultyStore struct {
	*store.Store
	broken atomic.Bool
}

func (s *faultyStore) SaveCall(ctx context.Context, r calls.Record) error {
	if s.broken.Load() {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveCall(ctx, r)
}

func (s *faultyStore) SaveMove(ctx context.Context, r calls.Record, m calls.RoomChange) error {
	if s.broken.Load() {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveMove(ctx, r, m)
}

func (s *faultyStore) SaveTransfer(ctx context.Context, r calls.Record, t calls.Transfer) error {
	if s.broken.Load() {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveTransfer(ctx, r, t)
}

func (s *faultyStore) SaveRoom(ctx context.Context, r calls.RoomSession) error {
	if s.broken.Load() {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveRoom(ctx, r)
}

func (s *faultyStore) EndRoom(ctx context.Context, r calls.RoomSession) error {
	if s.broken.Load() {
		return errors.New("the database is unavailable")
	}
	return s.Store.EndRoom(ctx, r)
}

// TestUnwrittenEnd shows that the end of a room session is written once the database works again.
func TestUnwrittenEnd(t *testing.T) {
	var rows *faultyStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &faultyStore{Store: c.Store.(*store.Store)}
		c.Rooms = rows
	})
	go m.calls.Run(t.Context())
	first, second := m.guest().join(), m.guest().join()
	rows.broken.Store(true)
	first.do(calls.Command{Op: calls.Hangup})
	second.do(calls.Command{Op: calls.Hangup})
	rows.broken.Store(false)

	var sessions []calls.RoomSession
	eventually(t, "the end of the session to be written", func() bool {
		sessions = must[page.Page[calls.RoomSession]](t)(
			calls.NewRooms(rows, m.store).List(t.Context(), m.project, calls.RoomFilter{}, page.Query{Size: 10})).Items
		return len(sessions) == 1 && !sessions[0].Ended.IsZero()
	})
	if sessions[0].Most != 2 {
		t.Errorf("the session had %d members, want 2", sessions[0].Most)
	}
}

// TestDialUnwrittenEnd shows that if the end of a room's session could not be written, it is written
// when a client next dials the room, together with the number of members.
func TestDialUnwrittenEnd(t *testing.T) {
	var rows *faultyStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &faultyStore{Store: c.Store.(*store.Store)}
		c.Rooms = rows
	})
	guest := m.guest().join()
	former := m.lastJoined(guest).RoomSession
	rows.broken.Store(true)
	guest.do(calls.Command{Op: calls.Hangup})
	rows.broken.Store(false)

	m.guest().join()
	session := must[calls.RoomSession](t)(m.store.FindRoom(t.Context(), m.project, former))
	if session.Ended.IsZero() {
		t.Error("the former session has not ended")
	}
	if session.Most != 1 {
		t.Errorf("the former session had %d members, want 1", session.Most)
	}
}

// An endingStore calls ending before it writes the end of a room session.
type endingStore struct {
	*store.Store
	ending func()
}

func (s *endingStore) EndRoom(ctx context.Context, r calls.RoomSession) error {
	s.ending()
	return s.Store.EndRoom(ctx, r)
}

// TestRoomWhileEnding shows that a room is known until its end has been written. Otherwise, a client
// who dials the room meanwhile would end the session in the database as if its node were lost.
func TestRoomWhileEnding(t *testing.T) {
	var rows *endingStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &endingStore{Store: c.Store.(*store.Store)}
		c.Rooms = rows
	})
	known := 0
	rows.ending = func() { known = m.calls.Stats().Rooms }
	m.guest().join().do(calls.Command{Op: calls.Hangup})
	if known != 1 {
		t.Errorf("while the end of the session was written, %d rooms were known, want 1", known)
	}
	if left := m.calls.Stats().Rooms; left != 0 {
		t.Errorf("after the end of the session, %d rooms are known, want none", left)
	}
}

// TestUnwrittenEndOfCall shows that the end of a call is written once the database works again, with
// the cause of the call's end.
func TestUnwrittenEndOfCall(t *testing.T) {
	var rows *faultyStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &faultyStore{Store: c.Store.(*store.Store)}
		c.Store = rows
	})
	go m.calls.Run(t.Context())
	p := m.talk("ada", "bob")
	rows.broken.Store(true)
	p.caller.do(calls.Command{Op: calls.Hangup})
	over := time.Now()
	rows.broken.Store(false)

	eventually(t, "the end of the call to be written", func() bool { return !p.call().Ended.IsZero() })
	got := p.call()
	if got.Cause != calls.NormalClearing {
		t.Errorf("the call ended with %v, want %v", got.Cause, calls.NormalClearing)
	}
	if got.Ended.After(over) {
		t.Errorf("the call ended at %v, want a time before %v, when the caller had hung up", got.Ended, over)
	}
}

// A countingStore is a store that cannot write the ends of calls and room sessions. It counts the
// attempts.
type countingStore struct {
	*store.Store
	ends, rooms atomic.Int32
}

func (s *countingStore) EndRoom(context.Context, calls.RoomSession) error {
	s.rooms.Add(1)
	return errors.New("the database is unavailable")
}

func (s *countingStore) SaveCall(ctx context.Context, r calls.Record) error {
	if r.State == calls.Completed {
		s.ends.Add(1)
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveCall(ctx, r)
}

// TestUnwrittenEndsOfMembers shows that if the database is unavailable, the members of a room that ends
// do not wait for it one after another.
func TestUnwrittenEndsOfMembers(t *testing.T) {
	var rows *countingStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &countingStore{Store: c.Store.(*store.Store)}
		c.Store = rows
	})
	moderator := m.subscriber("moderator").join()
	guests := []*member{m.guest().join(), m.guest().join()}
	moderator.do(calls.Command{Op: calls.End})
	for _, guest := range guests {
		m.wasSent(guest, calls.HungUp, 1)
	}
	if n := rows.ends.Load(); n != 1 {
		t.Errorf("the members waited for %d attempts to write an end, want 1", n)
	}
}

// TestUnwrittenEndsOfRooms shows that if the database is unavailable, rooms that end together, for
// example because the server stops, do not wait for it one after another.
func TestUnwrittenEndsOfRooms(t *testing.T) {
	var rows *countingStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &countingStore{Store: c.Store.(*store.Store)}
		c.Rooms = rows
	})
	kind := m.fabric.Resources.Kinds().ByPath("conference_rooms")
	must[fabric.Resource](t)(m.fabric.Resources.Create(t.Context(), m.project, kind,
		map[string]json.RawMessage{"name": json.RawMessage(`"hall"`)}))
	m.guest().join()
	m.subscriber("ada").do(calls.Command{Op: calls.Invite, To: "/public/hall", SDP: offer})
	if n := m.calls.Stats().Rooms; n != 2 {
		t.Fatalf("%d rooms are open, want 2", n)
	}
	var stop sync.WaitGroup
	defer stop.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop.Go(func() { m.calls.Shutdown(ctx) })
	eventually(t, "the rooms to end", func() bool { return m.calls.Stats().Rooms == 0 })
	if n := rows.rooms.Load(); n != 1 {
		t.Errorf("the rooms waited for %d attempts to write an end, want 1", n)
	}
}

// An unsavedEnd is a store whose first attempt to write the end of a call fails.
type unsavedEnd struct {
	*store.Store
	asked atomic.Int32
}

func (s *unsavedEnd) SaveCall(ctx context.Context, r calls.Record) error {
	if r.State == calls.Completed && s.asked.Add(1) == 1 {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveCall(ctx, r)
}

// TestStopWithUnwrittenEnd shows that the ends of all calls are written before the server stops, even if
// the first attempt to write one of them fails.
func TestStopWithUnwrittenEnd(t *testing.T) {
	m := newMeeting(t, func(c *calls.Config) { c.Store = &unsavedEnd{Store: c.Store.(*store.Store)} })
	go m.calls.Run(t.Context())
	pairs := []pair{m.talk("ada", "bob"), m.talk("cleo", "dan")}
	m.calls.Shutdown(t.Context())
	for _, p := range pairs {
		if got := p.call().State; got != calls.Completed {
			t.Errorf("after the stop, the call is %s, want %s", got, calls.Completed)
		}
	}
}

// TestUnwrittenAnswer shows that the answer to a call is written once the database works again.
func TestUnwrittenAnswer(t *testing.T) {
	var rows *faultyStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &faultyStore{Store: c.Store.(*store.Store)}
		c.Store = rows
	})
	p := m.ring("ada", "bob")
	rows.broken.Store(true)
	p.callee.do(calls.Command{Op: calls.Answer, SDP: offer})
	answered := time.Now()
	rows.broken.Store(false)

	eventually(t, "the answer to be written", func() bool { return p.call().State == calls.InCall })
	if got := p.call().Answered; got.After(answered) {
		t.Errorf("the call was answered at %v, want a time before %v", got, answered)
	}
}

// TestUnwrittenLock shows that the lock of a room is written once the database works again.
func TestUnwrittenLock(t *testing.T) {
	var rows *faultyStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &faultyStore{Store: c.Store.(*store.Store)}
		c.Rooms = rows
	})
	moderator := m.subscriber("moderator").join()
	rows.broken.Store(true)
	for _, op := range []calls.Op{calls.Lock, calls.Unlock, calls.Lock} {
		moderator.do(calls.Command{Op: op})
	}
	rows.broken.Store(false)

	session := m.lastJoined(moderator).RoomSession
	eventually(t, "the lock to be written", func() bool {
		return must[calls.RoomSession](t)(m.store.FindRoom(t.Context(), m.project, session)).Locked
	})
}

// An awayStore is a store of room sessions that is unavailable once they are open. It counts the attempts to
// write a session.
type awayStore struct {
	*store.Store
	saves atomic.Int32
}

func (s *awayStore) SaveRoom(context.Context, calls.RoomSession) error {
	s.saves.Add(1)
	return errors.New("the database is unavailable")
}

func (s *awayStore) FindRoom(context.Context, string, string) (calls.RoomSession, error) {
	return calls.RoomSession{}, errors.New("the database is unavailable")
}

// TestLockWithoutStore shows that a room waits only once for a database that is unavailable, no matter
// how often a moderator locks the room.
func TestLockWithoutStore(t *testing.T) {
	var rows *awayStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &awayStore{Store: c.Store.(*store.Store)}
		c.Rooms = rows
	})
	moderator := m.subscriber("moderator").join()
	for _, op := range []calls.Op{calls.Lock, calls.Unlock, calls.Lock} {
		moderator.do(calls.Command{Op: op})
	}
	if n := rows.saves.Load(); n != 1 {
		t.Errorf("the room waited for %d attempts to write its session, want 1", n)
	}
}

// A slowStore is a store whose search for requests calls report, and then blocks until ctx is done.
type slowStore struct {
	*store.Store
	report func()
}

func (s slowStore) TakeRequests(ctx context.Context, _ string) ([]calls.Request, error) {
	s.report()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRevokedWhileSlow shows that a revocation ends a call while the database does not answer.
func TestRevokedWhileSlow(t *testing.T) {
	asked := make(chan struct{})
	report := sync.OnceFunc(func() { close(asked) })
	m := newMeeting(t, func(c *calls.Config) { c.Store = slowStore{c.Store.(*store.Store), report} })
	guest := m.guest().join()
	go m.calls.Run(t.Context())
	<-asked
	if err := m.fabric.Tokens.Revoke(t.Context(), guest.Token); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call to end", func() bool { return len(m.received(calls.HungUp, guest)) == 1 })
	if got := m.received(calls.HungUp, guest)[0].Cause; got != calls.TokenRevoked {
		t.Errorf("the call ended with %v, want %v", got, calls.TokenRevoked)
	}
}

// TestRevokedWhileDialing shows that a call ends if its token was revoked before the call began. The
// socket of the client remains open for a moment after the revocation.
func TestRevokedWhileDialing(t *testing.T) {
	m := newMeeting(t)
	guest := m.guest()
	if err := m.fabric.Tokens.Revoke(t.Context(), guest.Token); err != nil {
		t.Fatal(err)
	}
	guest.join()
	go m.calls.Run(t.Context())
	eventually(t, "the call to end", func() bool { return len(m.received(calls.HungUp, guest)) == 1 })
	if got := m.received(calls.HungUp, guest)[0].Cause; got != calls.TokenRevoked {
		t.Errorf("the call ended with %v, want %v", got, calls.TokenRevoked)
	}
}

// TestRefusedByRoom shows that the members of a locked room are not notified about a client that
// could not join.
func TestRefusedByRoom(t *testing.T) {
	m := newMeeting(t)
	moderator := m.subscriber("moderator").join()
	moderator.do(calls.Command{Op: calls.Lock})
	stranger := m.guest().join()

	m.wasSent(stranger, calls.HungUp, 1)
	m.wasSent(stranger, calls.Joined, 0)
	m.wasSent(moderator, calls.MemberJoined, 0)
	m.wasSent(moderator, calls.MemberLeft, 0)
}

// named returns a guest with a name of n bytes.
func (m *meeting) named(n int) *member {
	guest := m.guest()
	guest.Party = &calls.Party{Name: strings.Repeat("n", n)}
	return guest
}

// TestRoomOfLongNames shows that a room is full before the list of its members becomes so long that it
// closes their sockets.
func TestRoomOfLongNames(t *testing.T) {
	m := newMeeting(t)
	host := m.named(0).join()
	p := m.talk("ada", "bob")
	left := calls.MaxListed - calls.Member{}.MaxSize()
	for range 2 {
		const long = 80 << 10
		m.named(long).join()
		left -= calls.Member{Name: strings.Repeat("n", long)}.MaxSize()
	}
	m.wasSent(host, calls.MemberJoined, 2)

	last := m.named(left - calls.Member{}.MaxSize())
	tooLong := m.named(len(last.Party.Name) + 1).join()
	m.wasSent(tooLong, calls.Joined, 0)
	if got := m.received(calls.HungUp, tooLong)[0].Cause; got != calls.UserBusy {
		t.Errorf("the call of a client with a long name ended with %v, want %v", got, calls.UserBusy)
	}
	last.join()
	m.wasSent(last, calls.Joined, 1)

	if err := p.caller.move(lobby); !errors.Is(err, problem.Conflict) {
		t.Errorf("moving into the full room = %v, want %v", err, problem.Conflict)
	}
	screen := &member{Client: host.Client, meeting: m, leg: uuid.NewString()}
	err := screen.try(calls.Command{Op: calls.Invite, Type: calls.Screen, Parent: host.leg, SDP: offer})
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("sharing a screen in the full room = %v, want %v", err, problem.Conflict)
	}
}

// TestSourceOfSource shows that a screen cannot have devices of its own.
func TestSourceOfSource(t *testing.T) {
	m := newMeeting(t)
	ada := m.subscriber("ada").join()
	screen := &member{Client: ada.Client, meeting: m, leg: uuid.NewString()}
	screen.do(calls.Command{Op: calls.Invite, Type: calls.Screen, Parent: ada.leg, SDP: offer})

	device := &member{Client: ada.Client, meeting: m, leg: uuid.NewString()}
	err := device.try(calls.Command{Op: calls.Invite, Type: calls.Device, Parent: screen.leg, SDP: offer})
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("adding a device of a screen = %v, want %v", err, problem.Invalid)
	}
	if got := m.calls.Stats().Legs; got != 2 {
		t.Errorf("the node has %d legs, want 2", got)
	}
}

// TestSwitchRarely shows that a guest who repeatedly mutes the camera makes the room switch at most
// twice a second. In the end, the members see the final state.
func TestSwitchRarely(t *testing.T) {
	m := newMeeting(t)
	first := m.guest().join()
	var others []*member
	for range 5 {
		others = append(others, m.guest().join())
	}

	sees := func(who *member) string {
		events := m.received(calls.LayoutChanged, who)
		if len(events) == 0 {
			return ""
		}
		return events[len(events)-1].Seen
	}

	eventually(t, "all members to see the first", func() bool {
		for _, o := range others {
			if sees(o) != first.leg {
				return false
			}
		}
		return true
	})

	before := len(m.received(calls.LayoutChanged, nil))
	start := time.Now()
	for range 200 {
		first.do(calls.Command{Op: calls.Mute, Media: video})
		first.do(calls.Command{Op: calls.Unmute, Media: video})
	}
	first.do(calls.Command{Op: calls.Mute, Media: video})
	eventually(t, "the others to see somebody else", func() bool { return sees(others[2]) == others[0].leg })
	switches := 2 + int(time.Since(start)/(500*time.Millisecond))
	if n := len(m.received(calls.LayoutChanged, nil)) - before; n > 6*switches {
		t.Errorf("the 6 members got %d changes of their view, want at most %d for %d switches", n, 6*switches, switches)
	}
}

// TestOwnMute shows that a moderator can undo the mutes of other moderators, but not a member's own
// mute.
func TestOwnMute(t *testing.T) {
	m := newMeeting(t)
	ada, moderator := m.subscriber("ada").join(), m.subscriber("moderator").join()

	for i, step := range []struct {
		by     *member
		op     calls.Op
		target string
		muted  bool // whether ada is muted afterwards
	}{
		{moderator, calls.Mute, ada.leg, true},
		{moderator, calls.Unmute, ada.leg, false},
		{moderator, calls.Mute, "all", true},
		{ada, calls.Unmute, ada.leg, false},
		{ada, calls.Mute, ada.leg, true},
		{moderator, calls.Unmute, ada.leg, true},
		{moderator, calls.Unmute, "all", true},
		{moderator, calls.Mute, ada.leg, true},
		{moderator, calls.Unmute, ada.leg, true},
		{ada, calls.Unmute, "", false},
	} {
		step.by.do(calls.Command{Op: step.op, Target: step.target, Media: []calls.Kind{calls.Audio, calls.Video}})
		var last calls.Member
		for _, e := range m.received(calls.MemberUpdated, ada) {
			if e.Member.ID == ada.leg {
				last = *e.Member
			}
		}
		if last.AudioMuted != step.muted {
			t.Errorf("after step %d, %s: audio muted = %v, want %v", i+1, step.op, last.AudioMuted, step.muted)
		}
		if last.VideoMuted != step.muted {
			t.Errorf("after step %d, %s: video muted = %v, want %v", i+1, step.op, last.VideoMuted, step.muted)
		}
	}
}

// A countingBus counts the messages to other nodes about members that changed.
type countingBus struct {
	*bus.Bus
	updates atomic.Int64
}

// Send implements calls.Nodes.
func (c *countingBus) Send(node, kind string, v any) {
	var message struct{ Event calls.Event }
	text, err := json.Marshal(v)
	if err == nil && json.Unmarshal(text, &message) == nil && message.Event.Kind == calls.MemberUpdated {
		c.updates.Add(1)
	}
	c.Bus.Send(node, kind, v)
}

// TestChangeAll shows that a change of all members sends another node one message for each changed
// member, no matter how many clients are connected there. Messages about the layout are not
// counted, because the room sends them at its own times.
func TestChangeAll(t *testing.T) {
	nodes := &countingBus{Bus: bus.New(bus.Config{Node: "node", Log: slog.New(slog.DiscardHandler)})}
	m := newMeeting(t, func(c *calls.Config) { c.Nodes = nodes })
	moderator := m.subscriber("moderator").join()
	const guests = 12
	for range guests {
		guest := m.guest()
		guest.Socket.Node = "other"
		guest.join()
	}
	sentBefore := nodes.updates.Load()
	receivedBefore := len(m.received(calls.MemberUpdated, moderator))

	moderator.do(calls.Command{Op: calls.Mute, Target: "all", Media: []calls.Kind{calls.Audio}})
	const changes = guests + 1 // the moderator is a member, too
	if got := nodes.updates.Load() - sentBefore; got != changes {
		t.Errorf("%d changes took %d messages between nodes, want one for each change", changes, got)
	}
	if got := len(m.received(calls.MemberUpdated, moderator)) - receivedBefore; got != changes {
		t.Errorf("the moderator was notified of %d changes, want %d", got, changes)
	}
}

// TestWideCommands shows that a moderator cannot send commands that affect all members of a room
// too often. Locking a room repeatedly rarely notifies the members.
func TestWideCommands(t *testing.T) {
	m := newMeeting(t)
	moderator := m.subscriber("moderator").join()
	guest := m.guest().join()
	start, done := time.Now(), 0
	for i := range 60 {
		op := []calls.Op{calls.Lock, calls.Unlock}[i%2]
		err := moderator.try(calls.Command{Op: op})
		if err != nil && !errors.Is(err, problem.RateLimited) {
			t.Fatalf("%s = %v, want no error or %v", op, err, problem.RateLimited)
		}
		if err == nil {
			done++
		}
	}

	seconds := 1 + int(time.Since(start)/time.Second)
	if done < 5 || done > 5+seconds {
		t.Errorf("%d of 60 commands were carried out in %d s, want 5 to %d", done, seconds, 5+seconds)
	}

	if n := len(m.received(calls.RoomUpdated, guest)); n > 1+seconds {
		t.Errorf("a guest was notified %d times in %d s, want at most %d", n, seconds, 1+seconds)
	}
	if err := moderator.try(calls.Command{Op: calls.Mute}); err != nil {
		t.Errorf("Mute of the moderator itself = %v, want no error", err)
	}
}

// TestWithoutVideoTakenOver shows that members who joined a room without video still send none after
// the room's node was lost.
func TestWithoutVideoTakenOver(t *testing.T) {
	m, second := newMeetingOfNodes(t)
	m.setRoom("room_join_video_off", "true")
	guest := m.guest().join()
	p := m.talk("ada", "bob")
	if err := p.caller.move(lobby); err != nil {
		t.Fatalf("moving into the room: %v", err)
	}
	for _, call := range []string{guest.leg, p.caller.leg} {
		eventually(t, "the muted video to be stored", func() bool {
			record := must[calls.Record](t)(m.store.FindCall(t.Context(), m.project, call))
			return record.CallerControls&calls.VideoMuted != 0
		})
	}

	m.calls = calls.New(second)
	guest.Socket.Node = "second"
	guest.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	m.wasSent(guest, calls.Joined, 2)
	for _, member := range m.lastJoined(guest).Room.Members {
		if !member.VideoMuted {
			t.Errorf("after the takeover, the video of the member %s is not muted", member.ID)
		}
	}
}

// A takingStore calls taking before another node takes over a room session.
type takingStore struct {
	*store.Store
	taking func()
}

func (s *takingStore) TakeRoom(ctx context.Context, r calls.RoomSession, node string) ([]calls.Record, error) {
	s.taking()
	return s.Store.TakeRoom(ctx, r, node)
}

// TestTakenOverEmpty shows that a room session ends if the call of its last member ends while another
// node takes the session over.
func TestTakenOverEmpty(t *testing.T) {
	m, second := newMeetingOfNodes(t)
	guest := m.guest().join()
	session := m.lastJoined(guest).RoomSession
	second.Rooms = &takingStore{Store: m.store, taking: func() {
		record := must[calls.Record](t)(m.store.FindCall(t.Context(), m.project, guest.leg))
		record.State, record.Cause, record.Ended = calls.Completed, calls.NodeLost, time.Now().UTC()
		if err := m.store.SaveCall(t.Context(), record); err != nil {
			t.Error(err)
		}
	}}

	m.calls = calls.New(second)
	guest.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	eventually(t, "the room session to end", func() bool {
		room := must[calls.RoomSession](t)(m.store.FindRoom(t.Context(), m.project, session))
		return !room.Ended.IsZero() && m.calls.Stats().Rooms == 0
	})
}

// TestMuteAbsent shows that an operator can mute a member who has not attached yet after the room's
// node was lost.
func TestMuteAbsent(t *testing.T) {
	m, second := newMeetingOfNodes(t)
	absent, present := m.guest().join(), m.guest().join()
	m.calls = calls.New(second)
	present.Socket.Node = "second"
	present.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	if err := m.store.AskMute(t.Context(), m.project, absent.leg, true); err != nil {
		t.Fatal(err)
	}
	go m.calls.Run(t.Context())
	eventually(t, "the absent member to be muted", func() bool {
		for _, e := range m.received(calls.MemberUpdated, present) {
			if e.Member.ID == absent.leg && e.Member.AudioMuted {
				return true
			}
		}
		return false
	})
}

// A volumeEngine sends the volumes of members with media to set.
type volumeEngine struct {
	calls.Engine
	set chan [2]int
}

func (e *volumeEngine) NewMixer() calls.Mixer { return volumeMixer{e.Engine.NewMixer(), e.set} }

type volumeMixer struct {
	calls.Mixer
	set chan<- [2]int
}

func (m volumeMixer) SetVolumes(media calls.Media, in, out int) {
	m.Mixer.SetVolumes(media, in, out)
	if media != nil {
		m.set <- [2]int{in, out}
	}
}

// TestVolumeOfAbsent shows that a moderator can set the volume of a member who has not attached yet after
// the room's node was lost. The volume applies once the member has attached.
func TestVolumeOfAbsent(t *testing.T) {
	m, second := newMeetingOfNodes(t)
	absent, moderator := m.guest().join(), m.subscriber("ada").join()
	engine := &volumeEngine{Engine: second.Engine, set: make(chan [2]int, 10)}
	second.Engine = engine
	m.calls = calls.New(second)

	moderator.Socket.Node = "second"
	moderator.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	moderator.do(calls.Command{Op: calls.SetMicrophone, Target: absent.leg, Volume: -20})
	absent.Socket.Node = "second"
	absent.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})

	var last [2]int
	for len(engine.set) > 0 {
		last = <-engine.set
	}
	if want := [2]int{-20, 0}; last != want {
		t.Errorf("the volumes of the member who attached last are %v, want %v", last, want)
	}
}
