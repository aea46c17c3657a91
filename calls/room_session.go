package calls

import (
	"context"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// A RoomSession lasts from when a room's first member joins until its last member leaves. Its
// members are the calls whose Record.RoomSession is its ID. Each joined when it was answered, or
// when it was moved there.
type RoomSession struct {
	ID        string // IDs are in the order of Started
	ProjectID string
	RoomID    string // the id of the conference room
	Address   string // /<context>/<name>
	Name      string // for display
	Node      string // the node that carries the session
	Started   time.Time
	Ended     time.Time // zero while the session is running
	Most      int       // the largest number of members so far
	Locked    bool      // nobody else can join
	Recorded  bool      // the session is being recorded now, without a pause
	Ending    bool      // a backend or an operator has asked to end the session; set only by the store
}

// A RoomRequest holds what backends and operators have requested for a room session. The node that
// carries the session reads it.
type RoomRequest struct {
	ProjectID, RoomID, Session string
	End                        bool // end the session
	Record                     bool // apply the changes to the session's recordings
}

// A RoomStore keeps room sessions. It is safe for concurrent use.
type RoomStore interface {
	// OpenRoom writes a new session and its webhook event. If the room already has a running
	// session, OpenRoom returns problem.Conflict.
	OpenRoom(ctx context.Context, s RoomSession) error
	// SaveRoom writes the fields of a running session that can change. If the session has ended, or
	// another node has taken it over, SaveRoom writes nothing and returns ErrTaken.
	SaveRoom(ctx context.Context, s RoomSession) error
	// TakeRoom changes the node that carries a session and the answered calls of its members. It
	// returns the members in the order in which they joined. It returns ErrTaken if the node in s
	// no longer carries the session, or if the session has ended.
	TakeRoom(ctx context.Context, s RoomSession, node string) (members []Record, err error)
	// EndRoom writes the end of a session and its webhook event. If the session has ended, or the
	// node in s no longer carries it, EndRoom returns problem.NotFound.
	EndRoom(ctx context.Context, s RoomSession) error
	// FindOpenRoom returns the room's session that has not ended, or problem.NotFound.
	FindOpenRoom(ctx context.Context, projectID, roomID string) (RoomSession, error)
	FindRoom(ctx context.Context, projectID, id string) (RoomSession, error)
	// ListRooms returns a page of room sessions, newest first.
	ListRooms(ctx context.Context, projectID string, f RoomFilter, q page.Query) (page.Page[RoomSession], error)
	// RunningRooms returns the node's sessions that have not ended.
	RunningRooms(ctx context.Context, node string) ([]RoomSession, error)
	// AskEndRoom requests the end of a session. AskRecordRoom notifies the session's node that the
	// recordings of the session have changed. Both return problem.NotFound if the session is
	// unknown or has ended.
	AskEndRoom(ctx context.Context, projectID, id string) error
	AskRecordRoom(ctx context.Context, projectID, id string) error
	// TakeRoomRequests returns the requests for the sessions of a node. It returns each change of
	// recordings once, and a request to end a session until the session has ended.
	TakeRoomRequests(ctx context.Context, node string) ([]RoomRequest, error)
	// PruneRooms deletes the sessions that ended before the given time, in short transactions.
	PruneRooms(ctx context.Context, before time.Time) error
}

// A RoomFilter selects room sessions. An empty field selects all sessions.
type RoomFilter struct {
	RoomID  string
	Running bool // only sessions that have not ended
}

// Duration returns how long the session lasted. For a running session, it counts until now.
func (s RoomSession) Duration(now time.Time) time.Duration {
	if s.Ended.IsZero() {
		return max(now.Sub(s.Started), 0)
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
	Recorded  bool    `json:"recording"` // the session is being recorded now, without a pause
	StartedAt string  `json:"started_at"`
	EndedAt   *string `json:"ended_at"`
	Duration  int     `json:"duration"` // seconds
}

// Document returns the session's RoomDocument.
func (s RoomSession) Document() RoomDocument {
	d := RoomDocument{
		ID:        s.ID,
		ProjectID: s.ProjectID,
		RoomID:    s.RoomID,
		Address:   s.Address,
		Name:      s.Name,
		Status:    "in-progress",
		Most:      s.Most,
		Locked:    s.Locked,
		Recorded:  s.Recorded,
		StartedAt: instant(s.Started),
		EndedAt:   instantOrNil(s.Ended),
		Duration:  int(s.Duration(time.Now()).Round(time.Second).Seconds()),
	}
	if !s.Ended.IsZero() {
		d.Status = "completed"
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
	ID           string  `json:"id"` // also the id of its call
	RoomSession  string  `json:"room_session_id"`
	Name         string  `json:"name"`
	Address      string  `json:"address,omitempty"`
	SubscriberID string  `json:"subscriber_id,omitempty"`
	JoinedAt     string  `json:"joined_at"`
	LeftAt       *string `json:"left_at"`
	Reason       string  `json:"reason,omitempty"` // the cause with which the call ended, or MOVED
	Duration     int     `json:"duration"`         // seconds
}

// joined returns when the call became a member of its room session.
func (r Record) joined() time.Time {
	if r.Joined.IsZero() {
		return r.Answered
	}
	return r.Joined
}

// HasMember reports whether the call is or was a member of a room.
func (r Record) HasMember() bool { return r.RoomSession != "" && !r.Answered.IsZero() }

// Member returns the MemberDocument of a call that is or was a member of a room.
func (r Record) Member() MemberDocument {
	d := r.Document()
	m := MemberDocument{
		ID:           r.ID,
		RoomSession:  r.RoomSession,
		Name:         d.FromName,
		Address:      d.From,
		SubscriberID: d.FromID,
		JoinedAt:     instant(r.joined()),
		LeftAt:       d.EndedAt,
		Duration:     seconds(r.joined(), r.Ended),
	}
	if m.LeftAt != nil {
		m.Reason = d.Cause
	}
	return m
}

// MemberEvent returns the webhook event for a member that has just joined or left.
func (r Record) MemberEvent() (fabric.Event, error) {
	name, at := fabric.MemberJoined, r.joined()
	if !r.Ended.IsZero() {
		name, at = fabric.MemberLeft, r.Ended
	}
	return fabric.NewEvent(name, r.ProjectID, r.ID, at, r.Member()) // an erasure finds the event by r.ID
}

// seconds returns the time between from and to, or until now if to is zero. It returns 0 if from is
// zero.
func seconds(from, to time.Time) int {
	switch {
	case from.IsZero():
		return 0
	case to.IsZero():
		to = time.Now()
	}
	return max(int(to.Sub(from).Round(time.Second).Seconds()), 0)
}

// MoveEvent returns the webhook event for the member that a move has added or removed.
func (r Record) MoveEvent(m RoomChange) (fabric.Event, error) {
	if m.Left.IsZero() {
		return r.MemberEvent()
	}
	left := instant(m.Left)
	d := MemberDocument{
		ID:           r.ID,
		RoomSession:  m.Session.ID,
		Name:         r.From.Name,
		Address:      r.From.Address,
		SubscriberID: r.From.SubscriberID,
		JoinedAt:     instant(m.Joined),
		LeftAt:       &left,
		Reason:       movedOut,
		Duration:     seconds(m.Joined, m.Left),
	}
	return fabric.NewEvent(fabric.MemberLeft, r.ProjectID, r.ID, m.Left, d)
}

// movedOut is the Reason of a member whose call was moved out of the room.
const movedOut = "MOVED"
