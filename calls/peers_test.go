package calls

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/sql"
)

// A boundStore is a store in which a dead node carried calls. It counts the searches for the node's
// calls and rooms, and how many of them have a deadline.
type boundStore struct {
	Store
	RoomStore
	bound, searches int
	last            string // the node whose calls were searched last
}

func (s *boundStore) note(ctx context.Context) {
	s.searches++
	if _, ok := ctx.Deadline(); ok {
		s.bound++
	}
}

func (*boundStore) RunningNodes(context.Context) ([]string, error) { return []string{"other"}, nil }

func (s *boundStore) FindLeg(ctx context.Context, _, _ string) (Record, error) {
	s.note(ctx)
	return Record{Node: "other"}, nil
}

func (s *boundStore) RunningCalls(ctx context.Context, node string, _ int) ([]Record, error) {
	s.note(ctx)
	s.last = node
	return nil, nil
}

func (s *boundStore) RunningRooms(ctx context.Context, _ string) ([]RoomSession, error) {
	s.note(ctx)
	return nil, nil
}

// TestRenewInTime shows that closing the calls of a dead node does not keep a node from renewing
// its own entry in time. The node searches for its own orphans last.
func TestRenewInTime(t *testing.T) {
	rows := &boundStore{}
	c := New(Config{Node: "self", Sessions: openSessions(t), Store: rows, Rooms: rows, Clients: hungUpClients{}})
	c.remote.add("1", remoteLeg{node: "other", holder: "alice", project: "p"})
	c.doubt.begin()
	c.peers.checked = time.Now()
	c.peers.lastAlive["other"] = time.Now().Add(-aliveFor)
	if err := c.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows.searches != 5 {
		t.Errorf("the node searched %d times for what it and the dead node carried, want 5", rows.searches)
	}
	if rows.last != "self" {
		t.Errorf("the node searched last for the calls of %q, want its own", rows.last)
	}
	if rows.bound != rows.searches {
		t.Errorf("%d of %d searches have a deadline, want all", rows.bound, rows.searches)
	}
}

// openSessions returns a new session store.
func openSessions(t *testing.T) session.Store {
	t.Helper()
	sessions, err := sql.Open(t.Context(), sql.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sessions.Close() })
	return sessions
}

// TestDeadNodes shows that a node counts as dead if it stays silent, but not because it could not
// renew its entry while the session store was unavailable.
func TestDeadNodes(t *testing.T) {
	p := newPeers("self", nil, openSessions(t))
	want := func(when string, want bool) {
		t.Helper()
		dead, err := p.deadNodes(t.Context(), []string{"self", "other"})
		if err != nil {
			t.Fatal(err)
		}
		if dead["other"] != want {
			t.Errorf("%s, the node counts as dead: %t, want %t", when, dead["other"], want)
		}
	}

	want("at first", false)
	long := time.Now().Add(-time.Hour)
	p.checked, p.lastAlive["other"] = long, long
	want("after an outage of the session store", false)
	p.lastAlive["other"] = time.Now().Add(-aliveFor)
	want("after a long silence", true)
}

// noSessions is a session store without entries.
type noSessions struct{ session.Store }

func (noSessions) Get(context.Context, session.Key) ([]byte, error) {
	return nil, problem.NoSuch("session")
}

// runningNodes are nodes of which only those in the map run.
type runningNodes struct {
	sentNodes
	running map[string]bool
}

func (n runningNodes) Ask(ctx context.Context, node, _ string, _, _ any) error {
	if n.running[node] {
		return ctx.Err()
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestRestartedNode shows that a node that is up again does not count as lost, even if a call has just
// found that the node was gone.
func TestRestartedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := map[string]bool{"self": true}
		p := newPeers("self", runningNodes{running: running}, noSessions{})
		gone, err := p.isGone(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		if !gone {
			t.Error("a node that does not answer is not gone")
		}

		running["other"] = true
		if p.isLost(t.Context(), "other") {
			t.Error("the node counts as lost after it has started again")
		}
	})
}

// TestPhonesOfGoneNodes shows that the phones of nodes that are gone do not ring, and that a call waits for
// all these nodes at the same time, also for those of the routes that may follow.
func TestPhonesOfGoneNodes(t *testing.T) {
	routeTo := func(nodes ...string) *route {
		r := &route{}
		for _, node := range nodes {
			r.targets = append(r.targets, target{phones: []Phone{{Socket: Socket{Node: node}}}})
		}
		return r
	}
	for name, tt := range map[string]struct {
		running []string
		want    []string // the nodes whose phones ring
	}{
		"two nodes run":   {[]string{"self", "other"}, []string{"self", "other", "other"}},
		"no node answers": {nil, []string{"self", "a", "b", "other", "c", "d", "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := runningNodes{running: make(map[string]bool)}
				for _, node := range tt.running {
					nodes.running[node] = true
				}
				p := planner{calls: New(Config{Node: "self", Nodes: nodes, Sessions: noSessions{}})}
				r := routeTo("self", "a", "b", "other")
				r.busy, r.noAnswer = routeTo("c"), routeTo("d", "other")

				ctx, cancel := context.WithTimeout(t.Context(), (pings+1)*pingFor)
				defer cancel()
				if err := p.choosePhones(ctx, r); err != nil {
					t.Fatal(err)
				}
				var ringing []string
				for _, phone := range r.phones() {
					ringing = append(ringing, phone.Socket.Node)
				}
				if !slices.Equal(ringing, tt.want) {
					t.Errorf("the phones of the nodes %v ring, want %v", ringing, tt.want)
				}
			})
		})
	}
}
