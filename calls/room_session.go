package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A RoomSession lasts from when a room's first member joins until its last member leaves. Its
// members are the calls whose Record.RoomSession is its ID. Each joined when its call was answered.
type RoomSession struct {
	ID        string // sorts by Started
	ProjectID string
	RoomID    string // the id of the conference room
	Address   string // /<context>/<name>
	Name      string // for display
	Node      string // the node that carries it
	Started   time.Time
	Ended     time.Time // zero while it runs
	Most      int       // the largest number of members at the same time
	Locked    bool      // nobody else can join
	Recorded  bool      // now, and not paused
	Ending    bool      // a backend or an operator has asked to end it; set only by the store
}

// An AskedRoom holds what backends and operators have requested for a room session. The node that
// carries it reads the requests.
type AskedRoom struct {
	ProjectID, RoomID, Session string
	End                        bool // end it
	Record                     bool // apply the changes to its recordings
}

// A RoomStore keeps room sessions. It is safe for concurrent use.
type RoomStore interface {
	// OpenRoom writes a new session and its webhook event. If the room already has a session that
	// has not ended, the error is problem.Conflict.
	OpenRoom(ctx context.Context, s RoomSession) error
	// SaveRoom writes the fields of a running session that change. If another node has taken the
	// session, or it has ended, nothing is written and the error is ErrTaken.
	SaveRoom(ctx context.Context, s RoomSession) error
	// TakeRoom changes the node that carries a session and the answered calls of its members, which
	// it returns in the order in which they joined. It returns ErrTaken if the node in s no longer
	// carries the session.
	TakeRoom(ctx context.Context, s RoomSession, node string) (members []Record, err error)
	// EndRoom writes the end of a session and its webhook event. If the session has ended, or the
	// node in s no longer carries it, the error is problem.NotFound.
	EndRoom(ctx context.Context, s RoomSession) error
	// FindOpenRoom returns the room's session that has not ended.
	FindOpenRoom(ctx context.Context, projectID, roomID string) (RoomSession, error)
	FindRoom(ctx context.Context, projectID, id string) (RoomSession, error)
	// ListRooms returns a page of room sessions, newest first.
	ListRooms(ctx context.Context, projectID string, f RoomFilter, q page.Query) (page.Page[RoomSession], error)
	// RunningRooms returns the node's sessions that have not ended.
	RunningRooms(ctx context.Context, node string) ([]RoomSession, error)
	// AskEndRoom requests the end of a session. AskRecordRoom reports that its recordings have
	// changed. Both return problem.NotFound if the project has no such session, or if the session has
	// ended.
	AskEndRoom(ctx context.Context, projectID, id string) error
	AskRecordRoom(ctx context.Context, projectID, id string) error
	// TakeAskedRooms returns the requests for the sessions of a node. It returns a change of
	// recordings once, but a request to end a session until it has ended.
	TakeAskedRooms(ctx context.Context, node string) ([]AskedRoom, error)
	// PruneRooms deletes the sessions that ended before the given time, in short transactions.
	PruneRooms(ctx context.Context, before time.Time) error
}

// A RoomFilter selects room sessions. Empty fields select all.
type RoomFilter struct {
	RoomID  string
	Running bool // only sessions that have not ended
}

// Duration returns how long the session lasted, or has lasted at now if it has not ended.
func (s RoomSession) Duration(now time.Time) time.Duration {
	if s.Ended.IsZero() {
		return now.Sub(s.Started)
	}
	return s.Ended.Sub(s.Started)
}

// A RoomDocument is a room session as shown by webhooks, the command line and the API.
type RoomDocument struct {
	ID        string  `json:"id"`
	ProjectID string  `json:"project_id"`
	RoomID    string  `json:"room_id"`
	Address   string  `json:"address"`
	Name      string  `json:"display_name"`
	Status    string  `json:"status"` // in-progress or completed
	Most      int     `json:"max_members_seen"`
	Locked    bool    `json:"locked"`
	Recorded  bool    `json:"recording"` // now, and not paused
	StartedAt string  `json:"started_at"`
	EndedAt   *string `json:"ended_at"`
	Duration  int     `json:"duration"` // seconds
}

// Document returns the session's RoomDocument.
func (s RoomSession) Document() RoomDocument {
	d := RoomDocument{ID: s.ID, ProjectID: s.ProjectID, RoomID: s.RoomID, Address: s.Address, Name: s.Name,
		Status: "in-progress", Most: s.Most, Locked: s.Locked, Recorded: s.Recorded, StartedAt: instant(s.Started),
		Duration: int(s.Duration(time.Now()).Round(time.Second).Seconds())}
	if !s.Ended.IsZero() {
		ended := instant(s.Ended)
		d.Status, d.EndedAt = "completed", &ended
	}
	return d
}

// Event returns the webhook event for the session's present state.
func (s RoomSession) Event() (fabric.Event, error) {
	name, at := fabric.RoomStarted, s.Started
	if !s.Ended.IsZero() {
		name, at = fabric.RoomEnded, s.Ended
	}
	return fabric.NewEvent(name, s.ProjectID, s.ID, at, s.Document())
}

// A MemberDocument is a member of a room session, past or present.
type MemberDocument struct {
	ID           string  `json:"id"` // also of its call
	RoomSession  string  `json:"room_session_id"`
	Name         string  `json:"name"`
	Address      string  `json:"address,omitempty"`
	SubscriberID string  `json:"subscriber_id,omitempty"`
	JoinedAt     string  `json:"joined_at"`
	LeftAt       *string `json:"left_at"`
	Reason       string  `json:"reason,omitempty"` // why it left: the cause of the call's end
	Duration     int     `json:"duration"`         // seconds
}

// HasMember reports whether the call made its caller a member of a room.
func (r Record) HasMember() bool { return r.RoomSession != "" && !r.Answered.IsZero() }

// Member returns the MemberDocument of a call to a room.
func (r Record) Member() MemberDocument {
	d := r.Document()
	m := MemberDocument{ID: r.ID, RoomSession: r.RoomSession, Name: d.FromName, Address: d.From, SubscriberID: d.FromID,
		JoinedAt: instant(r.Answered), LeftAt: d.EndedAt, Duration: d.Duration}
	if m.LeftAt != nil {
		m.Reason = d.Cause
	}
	return m
}

// MemberEvent returns the webhook event for a member that has just joined or left.
func (r Record) MemberEvent() (fabric.Event, error) {
	name, at := fabric.MemberJoined, r.Answered
	if !r.Ended.IsZero() {
		name, at = fabric.MemberLeft, r.Ended
	}
	return fabric.NewEvent(name, r.ProjectID, r.ID, at, r.Member()) // erasures find the event by r.ID
}

// openRoom returns the room at an address. If no node has the room, openRoom opens it on this node.
// If the node that has it is lost, this node takes the room over. If another node has it, r is nil and
// node names that node. If here is true, openRoom returns only a room that is already open on this
// node.
func (c *Calls) openRoom(ctx context.Context, projectID string, to Party, settings roomSettings, here bool) (
	r *room, node string, err error,
) {
	c.openingRoom.Lock()
	defer c.openingRoom.Unlock()
	if r := c.findRoom(roomKey{projectID, to.RoomID}); r != nil {
		return r, "", nil
	}
	if here {
		return nil, "", errNotHere
	}

	const attempts = 3
	for range attempts {
		s := RoomSession{ID: uuid.Must(uuid.NewV7()).String(), ProjectID: projectID, RoomID: to.RoomID,
			Address: to.Address, Name: to.Name, Node: c.node, Started: time.Now().UTC()}
		err := c.roomStore.OpenRoom(ctx, s)
		if err == nil {
			return c.newRoom(s, settings), "", nil
		}
		if !errors.Is(err, problem.Conflict) {
			return nil, "", err
		}

		other, err := c.roomStore.FindOpenRoom(ctx, projectID, to.RoomID)
		switch {
		case errors.Is(err, problem.NotFound):
			continue
		case err != nil:
			return nil, "", err
		case other.Node != c.node && !c.isLost(ctx, other.Node):
			return nil, other.Node, nil
		}
		if other.Node == c.node { // its end could not be written
			if err := c.endLostRoom(ctx, other); err != nil {
				return nil, "", err
			}
			continue
		}
		r, err := c.takeRoom(ctx, other)
		if !errors.Is(err, ErrTaken) {
			return r, "", err
		}
	}
	return nil, "", fmt.Errorf("opening a room: another node opened and closed it %d times", attempts)
}

func (c *Calls) newRoom(s RoomSession, settings roomSettings) *room {
	r := &room{mailbox: &mailbox{}, calls: c, mixer: c.engine.NewMixer(), session: s, settings: settings}
	r.recordings.init(c, r, Recorded{Project: s.ProjectID, RoomSession: s.ID})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rooms[r.key()] = r
	return r
}

// findRoom returns the open room with this key on this node, or nil.
func (c *Calls) findRoom(key roomKey) *room {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rooms[key]
}

func (c *Calls) forgetRoom(r *room) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rooms[r.key()] == r {
		delete(c.rooms, r.key())
	}
}

// endLostRoom writes the end of a session whose node is lost.
func (c *Calls) endLostRoom(ctx context.Context, s RoomSession) error {
	s.Ended = time.Now().UTC()
	if err := c.roomStore.EndRoom(ctx, s); !errors.Is(err, problem.NotFound) {
		return err
	}
	return nil // another node was faster
}

// carryOutRoomRequests carries out the requests of backends and operators for this node's rooms.
func (c *Calls) carryOutRoomRequests(ctx context.Context) error {
	c.mu.Lock()
	idle := len(c.rooms) == 0
	c.mu.Unlock()
	if idle {
		return nil
	}
	asked, err := c.roomStore.TakeAskedRooms(ctx, c.node)
	if err != nil {
		return err
	}
	for _, a := range asked {
		r := c.findRoom(roomKey{a.ProjectID, a.RoomID})
		if r == nil || r.session.ID != a.Session {
			continue
		}
		if a.End {
			r.post(func() { r.end(managerRequest) })
		}
		if a.Record && c.recorder != nil {
			go r.recordings.change(nil) // it logs its own errors
		}
	}
	return nil
}

// addUnwritten remembers a session whose end could not be written.
func (c *Calls) addUnwritten(s RoomSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwritten = append(c.unwritten, s)
}

// writeEnds writes the ends of sessions that could not be written before. Otherwise, they would run
// until this node dies.
func (c *Calls) writeEnds(ctx context.Context) error {
	c.mu.Lock()
	waiting := c.unwritten
	c.unwritten = nil
	c.mu.Unlock()

	for i, s := range waiting {
		if err := c.roomStore.EndRoom(ctx, s); err != nil && !errors.Is(err, problem.NotFound) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.unwritten = append(c.unwritten, waiting[i:]...)
			return err
		}
	}
	return nil
}

// joinElsewhere asks the node that has a room to make the client a member.
func (c *Calls) joinElsewhere(ctx context.Context, node string, client Client, cmd Command) (r Reply, err error) {
	if err := c.nodes.Ask(ctx, node, joinMessage, forwarded{client, cmd}, &r); err != nil {
		return Reply{}, err
	}
	c.noteForwarded(node, client, cmd)
	return r, nil
}
