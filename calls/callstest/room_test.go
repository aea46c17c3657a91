// Package callstest tests package calls with the store; see docs/testing.md.
package callstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// lobby is the address of the room in a meeting.
const lobby = "/public/lobby"

// A meeting is a node with a conference room. It records the events that clients receive.
type meeting struct {
	t       *testing.T
	fabric  *fabric.Fabric
	calls   *calls.Calls
	store   *store.Store
	project string
	room    string // the id of the room's address

	mu     sync.Mutex
	events []received
}

// A received is an event with the socket that received it.
type received struct {
	calls.Event
	socket string
}

// Tell implements calls.Clients.
func (m *meeting) Tell(to calls.Socket, e calls.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, received{e, to.ID})
}

// newMeeting returns a meeting. The functions in change may modify the configuration of its calls.
func newMeeting(t *testing.T, change ...func(*calls.Config)) *meeting {
	t.Helper()
	t.Parallel()
	dir := storetest.Dir(t)
	m := &meeting{t: t, store: storetest.Open(t, dir, nil)}
	sessions := must[*sessionsql.Store](t)(sessionsql.Open(t.Context(), sessionsql.Config{Dir: dir}))
	t.Cleanup(func() { _ = sessions.Close() })
	revoked := revocation.New(m.store, time.Now)
	if err := revoked.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.fabric = fabric.New(fabric.Config{Stores: m.store.Fabric(), Ring: storetest.Ring(t, dir, m.store, nil),
		Revocations: revoked, Sessions: sessions, Host: "puc.localhost", Issuer: "http://localhost/"})
	engine := must[*media.Engine](t)(media.New(media.Config{Listen: "127.0.0.1:0", NoTCP: true}))
	t.Cleanup(func() { _ = engine.Close() })

	cfg := calls.Config{Fabric: m.fabric, Engine: engine, Clients: m, Store: m.store, Rooms: m.store,
		Sessions: sessions, Node: "node", Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	m.calls = calls.New(cfg)
	m.project = must[fabric.Project](t)(m.fabric.Projects.Create(t.Context(), "one")).ID
	kind := m.fabric.Resources.Kinds().ByPath("conference_rooms")
	must[fabric.Resource](t)(m.fabric.Resources.Create(t.Context(), m.project, kind,
		map[string]json.RawMessage{"name": json.RawMessage(`"lobby"`)}))
	m.room = must[fabric.Address](t)(m.fabric.Addresses.FindAt(t.Context(), m.project, lobby)).ID
	return m
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A member is a client in the room.
type member struct {
	calls.Client
	*meeting
	leg string
}

// subscriber returns a client of a new subscriber. Subscribers are moderators.
func (m *meeting) subscriber(name string) *member {
	m.t.Helper()
	email := name + "@example.com"
	s := must[fabric.Subscriber](m.t)(m.fabric.Subscribers.Create(m.t.Context(), m.project,
		fabric.SubscriberInput{Email: &email, Profile: fabric.Profile{DisplayName: &name}}))
	return m.client(fabric.Token{Kind: fabric.SAT, SubscriberID: s.ID})
}

// guest returns a client with a new guest token.
func (m *meeting) guest() *member {
	return m.client(fabric.Token{Kind: fabric.Guest, AddressIDs: []string{m.room}})
}

func (m *meeting) client(t fabric.Token) *member {
	t.ID, t.ProjectID, t.IssuedAt = uuid.NewString(), m.project, time.Now()
	at := calls.Socket{Node: "node", ID: uuid.NewString()}
	return &member{calls.Client{Token: t, Socket: at}, m, uuid.NewString()}
}

// offer is the description of a browser that sends and receives audio and video.
var offer = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n" + section("audio", 0, "0") +
	"a=rtpmap:0 PCMU/8000\r\n" +
	section("video", 96, "1") + "a=rtpmap:96 VP8/90000\r\n"

func section(kind string, format int, mid string) string {
	return fmt.Sprintf("m=%s 9 UDP/TLS/RTP/SAVPF %d\r\na=mid:%s\r\na=ice-ufrag:abcd\r\na=ice-pwd:%s\r\n"+
		"a=setup:active\r\na=rtcp-mux\r\na=sendrecv\r\na=fingerprint:sha-256 %s\r\n",
		kind, format, mid, strings.Repeat("p", 24), strings.TrimSuffix(strings.Repeat("AB:", 32), ":"))
}

// join makes the client a member of the room.
func (m *member) join() *member {
	m.t.Helper()
	m.do(calls.Command{Op: calls.Invite, To: lobby, SDP: offer})
	return m
}

// do executes a command that must succeed.
func (m *member) do(cmd calls.Command) {
	m.t.Helper()
	if err := m.try(cmd); err != nil {
		m.t.Fatalf("%s: %v", cmd.Op, err)
	}
}

// try executes a command.
func (m *member) try(cmd calls.Command) error {
	cmd.Leg = m.leg
	_, err := m.meeting.calls.Do(context.Background(), m.Client, cmd)
	return err
}

// received returns the events of a kind that a member has received. If the member is nil, it
// returns the events of all clients.
func (m *meeting) received(kind calls.EventKind, by *member) (all []calls.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if e.Kind == kind && (by == nil || by.Socket.ID == e.socket) {
			all = append(all, e.Event)
		}
	}
	return all
}

// eventually waits until ready returns true.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ready(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// A faultyStore is a store that fails to write the end of room sessions while it is broken.
type faultyStore struct {
	*store.Store
	broken atomic.Bool
}

func (s *faultyStore) EndRoom(ctx context.Context, r calls.RoomSession) error {
	if s.broken.Load() {
		return errors.New("the database is away")
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

// video is the Media field of commands for a camera.
var video = []calls.Kind{calls.Video}

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
		all := m.received(calls.LayoutChanged, who)
		if len(all) == 0 {
			return ""
		}
		return all[len(all)-1].Seen
	}

	eventually(t, "all members to see the first", func() bool {
		for _, o := range others {
			if sees(o) != first.leg {
				return false
			}
		}
		return true
	})

	before, start := len(m.received(calls.LayoutChanged, nil)), time.Now()
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
		muted  bool
	}{
		{moderator, calls.Mute, ada.leg, true}, {moderator, calls.Unmute, ada.leg, false},
		{moderator, calls.Mute, "all", true}, {ada, calls.Unmute, ada.leg, false},
		{ada, calls.Mute, ada.leg, true}, {moderator, calls.Unmute, ada.leg, true},
		{moderator, calls.Unmute, "all", true},
		{moderator, calls.Mute, ada.leg, true}, {moderator, calls.Unmute, ada.leg, true},
		{ada, calls.Unmute, "", false},
	} {
		step.by.do(calls.Command{Op: step.op, Target: step.target, Media: []calls.Kind{calls.Audio, calls.Video}})
		var last calls.Member
		for _, e := range m.received(calls.MemberUpdated, ada) {
			if e.Member.ID == ada.leg {
				last = *e.Member
			}
		}
		if last.AudioMuted != step.muted || last.VideoMuted != step.muted {
			t.Errorf("after step %d, %s (by the member itself: %v), audio and video are muted: %v and %v, want %v",
				i+1, step.op, step.by == ada, last.AudioMuted, last.VideoMuted, step.muted)
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
	const n = 12
	for range n {
		guest := m.guest()
		guest.Socket.Node = "other"
		guest.join()
	}
	before, changed := nodes.updates.Load(), len(m.received(calls.MemberUpdated, moderator))

	moderator.do(calls.Command{Op: calls.Mute, Target: "all", Media: []calls.Kind{calls.Audio}})
	const changes = n + 1 // the moderator is a member, too
	if got := nodes.updates.Load() - before; got != changes {
		t.Errorf("%d changes took %d messages between nodes, want one for each change", changes, got)
	}
	if got := len(m.received(calls.MemberUpdated, moderator)) - changed; got != changes {
		t.Errorf("the moderator was notified of %d changes, want %d", got, changes)
	}
}

// TestWideCommands shows that a moderator cannot change all members of a room too often, and that
// locking a room again and again rarely notifies them.
func TestWideCommands(t *testing.T) {
	m := newMeeting(t)
	moderator := m.subscriber("moderator").join()
	guest := m.guest().join()
	start, done := time.Now(), 0
	for i := range 60 {
		op := []calls.Op{calls.Lock, calls.Unlock}[i%2]
		err := moderator.try(calls.Command{Op: op})
		if err != nil && !errors.Is(err, problem.RateLimited) {
			t.Fatalf("%s = %v, want %v", op, err, problem.RateLimited)
		}
		if err == nil {
			done++
		}
	}

	seconds := 1 + int(time.Since(start)/time.Second)
	if done < 5 || done > 5+seconds {
		t.Errorf("%d of 60 commands were carried out in %d s, want 5 at once and one a second", done, seconds)
	}

	if n := len(m.received(calls.RoomUpdated, guest)); n > 1+seconds {
		t.Errorf("a guest was notified %d times in %d s, want once a second", n, seconds)
	}
	if err := moderator.try(calls.Command{Op: calls.Mute}); err != nil {
		t.Errorf("Mute of the moderator itself = %v, want no error", err)
	}
}
