// Package callstest tests package calls with the store; see docs/testing.md.
package callstest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/fabric"
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

// newMeetingOfNodes returns a meeting, and the configuration of a second node that shares its stores.
func newMeetingOfNodes(t *testing.T) (m *meeting, second calls.Config) {
	t.Helper()
	m = newMeeting(t, func(c *calls.Config) {
		second = *c
		second.Node = "second"
	})
	return m, second
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
	m.fabric = fabric.New(fabric.Config{
		Stores:      m.store.Fabric(),
		Ring:        storetest.Ring(t, dir, m.store, nil),
		Revocations: revoked,
		Sessions:    sessions,
		Host:        "puc.localhost",
		Issuer:      "http://localhost/",
	})
	engine := must[*media.Engine](t)(media.New(media.Config{Listen: "127.0.0.1:0", NoTCP: true}))
	t.Cleanup(func() { _ = engine.Close() })

	cfg := calls.Config{
		Fabric:   m.fabric,
		Engine:   engine,
		Clients:  m,
		Store:    m.store,
		Rooms:    m.store,
		Sessions: sessions,
		Node:     "node",
		Log:      slog.New(slog.DiscardHandler),
	}
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

// client returns a client that has connected to the meeting's node with the given kind of token.
func (m *meeting) client(token fabric.Token) *member {
	token.ID = uuid.NewString()
	token.ProjectID = m.project
	token.IssuedAt = time.Now()
	socket := calls.Socket{Node: "node", ID: uuid.NewString()}
	return &member{Client: calls.Client{Token: token, Socket: socket}, meeting: m, leg: uuid.NewString()}
}

// offer is the description of a browser that sends and receives audio and video.
var offer = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n" +
	section("audio", 0, "0") + "a=rtpmap:0 PCMU/8000\r\n" +
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
func (m *meeting) received(kind calls.EventKind, by *member) (events []calls.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if e.Kind == kind && (by == nil || by.Socket.ID == e.socket) {
			events = append(events, e.Event)
		}
	}
	return events
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

// setRoom changes a setting of the meeting's room.
func (m *meeting) setRoom(setting, value string) {
	m.t.Helper()
	kind := m.fabric.Resources.Kinds().ByPath("conference_rooms")
	room := must[fabric.Address](m.t)(m.fabric.Addresses.FindAt(m.t.Context(), m.project, lobby)).ResourceID
	fields := map[string]json.RawMessage{setting: json.RawMessage(value)}
	must[fabric.Resource](m.t)(m.fabric.Resources.Update(m.t.Context(), m.project, kind, room, fields))
}

// video is the Media field of commands for a camera.
var video = []calls.Kind{calls.Video}

// A pair is a call between two subscribers.
type pair struct{ caller, callee *member }

// talk connects two new subscribers in a call.
func (m *meeting) talk(from, to string) pair {
	m.t.Helper()
	p := m.ring(from, to)
	p.callee.do(calls.Command{Op: calls.Answer, SDP: offer})
	return p
}

// ring begins a call between two new subscribers.
func (m *meeting) ring(from, to string) pair {
	m.t.Helper()
	p := pair{caller: m.subscriber(from), callee: m.online(to)}
	p.caller.do(calls.Command{Op: calls.Invite, To: "/private/" + to, SDP: offer})
	p.callee.rings()
	return p
}

// online returns a client of a new subscriber. The subscriber can be called.
func (m *meeting) online(name string) *member {
	m.t.Helper()
	who := m.subscriber(name)
	who.Token.ExpiresAt = time.Now().Add(time.Hour) // otherwise, the client would not be online
	if err := m.fabric.Presence.Online(m.t.Context(), who.Token, who.Socket.ID); err != nil {
		m.t.Fatal(err)
	}
	return who
}

// rings waits until a call rings the client.
func (m *member) rings() {
	m.t.Helper()
	eventually(m.t, "the client to ring", func() bool { return len(m.received(calls.Invited, m)) == 1 })
	m.leg = m.received(calls.Invited, m)[0].Leg
}

// move moves the call of a member into the room at an address. The address "" moves the call out of
// its room.
func (m *member) move(address string) error { return m.try(calls.Command{Op: calls.Move, To: address}) }

// lastJoined returns the last Joined event of a client.
func (m *meeting) lastJoined(by *member) calls.Event {
	m.t.Helper()
	events := m.received(calls.Joined, by)
	if len(events) == 0 {
		m.t.Fatal("a client has received no Joined event")
	}
	return events[len(events)-1]
}

// membersIn returns the ids of the members in the last Joined event of a client, in order.
func (m *meeting) membersIn(by *member) (ids []string) {
	for _, member := range m.lastJoined(by).Room.Members {
		ids = append(ids, member.ID)
	}
	return ids
}

// call returns the record of the pair's call.
func (p pair) call() calls.Record {
	m := p.caller.meeting
	m.t.Helper()
	return must[calls.Record](m.t)(m.store.FindCall(context.Background(), m.project, p.caller.leg))
}

// recordHas checks the record of the pair's call. It must have the values that set assigns.
func (p pair) recordHas(set func(want *calls.Record)) {
	p.caller.t.Helper()
	got := p.call()
	want := got
	set(&want)
	if diff := cmp.Diff(want, got); diff != "" {
		p.caller.t.Errorf("the record of the call is wrong (-want +got):\n%s", diff)
	}
}

// wasSent checks how many events of a kind a client has received.
func (m *meeting) wasSent(client *member, kind calls.EventKind, want int) {
	m.t.Helper()
	if got := len(m.received(kind, client)); got != want {
		m.t.Errorf("client %s has received %d %s events, want %d", client.leg, got, kind, want)
	}
}
