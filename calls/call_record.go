package calls

import (
	"cmp"
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/page"
)

// A State is the stage that a call has reached.
type State string

// The states that a call goes through.
const (
	Created   State = "created"
	Ringing   State = "ringing"
	InCall    State = "answered"
	Completed State = "ended"
)

// A Record is a call's row in the database.
type Record struct {
	Key       string // keys are in the order of Created
	ID        string // the id of the leg that dialed, which its client chose
	ProjectID string
	From, To  Party
	Dialed    string // the address as the caller dialed it
	State     State
	Cause     Cause // set once the call has ended
	Node      string
	Created   time.Time
	Answered  time.Time // zero if nobody answered
	Ended     time.Time // zero while the call is running
	Ending    bool      // a backend or an operator has asked to end the call; only the store sets it

	Gateway      string    // the id of the SIP gateway that the call uses; "" for other calls
	Payer        string    // the account that the call's costs count against; "" for other calls
	Lines        int       // the number of lines of the gateway that the call uses; 1 for other calls
	OutboundFrom time.Time // when a transfer made the call use the gateway; zero for other calls
	Refusal      string    // the rule that the call broke, such as expensive_range; "" for none

	RoomSession  string    // the room session that the call joined; "" for other calls
	Joined       time.Time // when the call was moved to the room; zero if the caller dialed the room
	RecordingSid string    // "" if the call was not recorded
	Video        bool

	// After a node is lost, clients find their call by these fields. The node that takes the call
	// over restores its controls.
	Guest                          string // the holder of the caller's token, if the caller is a guest
	CallerLeg                      string // the id of the leg that became the caller; "" if the caller dialed
	CalleeLeg                      string // the id of the leg that answered; "" before the answer
	CallerControls, CalleeControls Controls
	Recorded                       bool // the call is being recorded now, without a pause

	// Measurements of the caller's media.
	Received, Lost    int64 // packets
	Jitter, RoundTrip time.Duration
	Transport         string // udp or tcp; "" if no media has arrived
}

// callerLeg returns the id of the caller's leg. It is ID, unless the caller has transferred the call.
func (r Record) callerLeg() string { return cmp.Or(r.CallerLeg, r.ID) }

// outboundSince returns when a call through a gateway began to count as one: when a transfer made
// it use the gateway or, without such a transfer, when it was answered.
func (r Record) outboundSince() time.Time {
	if r.OutboundFrom.IsZero() {
		return r.Answered
	}
	return r.OutboundFrom
}

// endNow returns the time to record as the end of a call that ends now.
func (r Record) endNow() time.Time { return nowAfter(r.Created, r.Answered, r.Joined, r.OutboundFrom) }

// nowAfter returns the present time. If the clock was set back, or the clock of another node is
// ahead, it returns the latest of the given times, so that no duration is negative.
func nowAfter(times ...time.Time) time.Time {
	latest := time.Now().UTC()
	for _, t := range times {
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}

// Duration returns how long the parties were connected. It is zero if nobody has answered the call.
// For a running call, it counts until now.
func (r Record) Duration(now time.Time) time.Duration {
	switch {
	case r.Answered.IsZero():
		return 0
	case r.Ended.IsZero():
		return max(now.Sub(r.Answered), 0)
	}
	return r.Ended.Sub(r.Answered)
}

// A Filter selects calls. An empty field selects all calls.
type Filter struct {
	Subscribers []string // calls that any of these subscribers made or received; empty means all calls
	Party       string   // text in the name or the address of a party, or digits of its number
	Guest       string   // as in Record
	RoomSession string   // members of this room session
	State       State
	Running     bool   // only calls that have not ended
	Result      Result // only calls that ended with this result
	From, To    string // addresses

	CreatedFrom, CreatedBefore time.Time // when the call began; CreatedBefore is exclusive
	EndedFrom, EndedBefore     time.Time // when the call ended; either bound excludes running calls
}

// FirstKey returns the smallest key of calls that began at the given time or later.
func FirstKey(at time.Time) string {
	var u uuid.UUID
	ms := uint64(max(0, at.UnixMilli()))
	binary.BigEndian.PutUint32(u[0:], uint32(ms>>16))
	binary.BigEndian.PutUint16(u[4:], uint16(ms))
	return u.String()
}

// A Request holds what backends and operators have requested for a call. The node that carries the
// call reads it.
type Request struct {
	ProjectID, CallID string
	HangUp            bool // end the call
	Record            bool // apply the changes to its recordings
	Mute, Unmute      bool // the microphone of a member of a room
}

// A Store stores the records of calls.
type Store interface {
	// SaveCall writes a record and its webhook event. If the call has an earlier record, SaveCall
	// updates it, unless the call has already ended. In that case, SaveCall writes nothing and
	// returns no error. If a record is new, but the project already has a call with its id,
	// SaveCall returns problem.Conflict. If another node has taken the call over, SaveCall writes
	// nothing and returns ErrTaken.
	SaveCall(ctx context.Context, r Record) error
	// EndCall is like SaveCall, for the end of a call. It reports whether it has written the end. It
	// has not written the end if the call had already ended.
	EndCall(ctx context.Context, r Record) (written bool, err error)
	// SaveOutbound is like SaveCall, for a call that starts to use a gateway. If the call already
	// has a record, SaveOutbound writes only the gateway, the payer, the lines and OutboundFrom. In
	// the same transaction, it calls admit with the usage so far. If admit returns an error, it
	// writes nothing. Calls of a project are admitted one at a time, so each sees the usage of all
	// earlier calls.
	SaveOutbound(ctx context.Context, r Record, admit func(Usage) error) error
	// OutboundUsage returns the usage of the payer, the project and the gateway of a call.
	OutboundUsage(ctx context.Context, projectID, id string) (Usage, error)
	// SaveRecorded writes only whether the call is being recorded, and its first recording. If the
	// call has ended, nothing is written. If another node has taken the call over, SaveRecorded
	// returns ErrTaken.
	SaveRecorded(ctx context.Context, r Record) error
	// SaveControls writes only the controls of both sides. It returns ErrTaken if the call has
	// ended, or if another node has taken it over.
	SaveControls(ctx context.Context, r Record) error
	// SaveMove writes only the room session, and queues the webhook event of a member that has
	// joined or left. If the call has ended, nothing is written. If another node has taken the call
	// over, SaveMove returns ErrTaken.
	SaveMove(ctx context.Context, r Record, m RoomChange) error
	// SaveTransfer writes the result of a transfer: the gateway, the lines and, unless the transfer
	// failed, the parties and their legs. If the call has ended, nothing is written. If another
	// node has taken the call over, SaveTransfer returns ErrTaken.
	SaveTransfer(ctx context.Context, r Record, t Transfer) error
	// FindLeg returns the answered call that has the given leg. If no such call exists or the call
	// has ended, FindLeg returns problem.NotFound.
	FindLeg(ctx context.Context, projectID, leg string) (Record, error)
	// TakeCall changes the node that carries an answered call. It returns ErrTaken if the node in
	// the record no longer carries the call, or if the call has ended.
	TakeCall(ctx context.Context, r Record, node string) error
	FindCall(ctx context.Context, projectID, id string) (Record, error)
	// ListCalls returns a page of calls, newest first.
	ListCalls(ctx context.Context, projectID string, f Filter, q page.Query) (page.Page[Record], error)
	// RunningCalls returns the node's calls that have not ended, oldest first. It returns at most
	// limit calls.
	RunningCalls(ctx context.Context, node string, limit int) ([]Record, error)
	// RunningNodes returns the nodes with calls or room sessions that have not ended.
	RunningNodes(ctx context.Context) ([]string, error)
	// AskHangUp requests the end of a running call. AskRecord notifies the call's node that the
	// recordings of the call have changed. Both return problem.NotFound if the call is unknown or
	// has ended.
	AskHangUp(ctx context.Context, projectID, id string) error
	AskRecord(ctx context.Context, projectID, id string) error
	// AskMute requests that a member of a room be muted or unmuted. It replaces an earlier request.
	// It returns problem.NotFound if the member is unknown or has left.
	AskMute(ctx context.Context, projectID, id string, muted bool) error
	// TakeRequests returns the requests for the calls of a node. It returns each request once. The
	// exception is a request to end a call, which it returns until the call has ended.
	TakeRequests(ctx context.Context, node string) ([]Request, error)
	// PruneCalls deletes the records of calls that ended before the given time, in short
	// transactions.
	PruneCalls(ctx context.Context, before time.Time) error
}
