package calls

import (
	"cmp"
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
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
	Key       string // sorts by Created
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
	Lines        int       // the number of lines of the gateway that the call uses
	OutboundFrom time.Time // when a transfer made the call use the gateway; zero for other calls
	Refusal      string    // the rule that the call broke, such as expensive_range; "" for none

	RoomSession  string    // the room session that the call joined; "" for other calls
	Joined       time.Time // when the call was moved to the room; zero if the caller dialed the room
	RecordingSid string    // "" if the call was not recorded
	Video        bool

	// After a node is lost, clients find their call by these fields. The node that takes the call
	// over restores its controls.
	Guest                          string // the id of the caller's token, if the caller is a guest
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

// Duration returns how long the parties were connected. It is zero if nobody has answered the call.
// For a running call, it counts until now.
func (r Record) Duration(now time.Time) time.Duration {
	switch {
	case r.Answered.IsZero():
		return 0
	case r.Ended.IsZero():
		return now.Sub(r.Answered)
	}
	return r.Ended.Sub(r.Answered)
}

// A Document is a call as shown by webhooks, the command line and the API.
type Document struct {
	ID           string  `json:"id"`
	ProjectID    string  `json:"project_id"`
	State        State   `json:"state"`
	Cause        string  `json:"cause,omitempty"`
	Reason       string  `json:"reason,omitempty"` // the rule that a refused call broke
	From         string  `json:"from"`
	FromName     string  `json:"from_name"`
	FromID       string  `json:"from_subscriber_id,omitempty"`
	To           string  `json:"to"`
	ToName       string  `json:"to_name"`
	ToID         string  `json:"to_subscriber_id,omitempty"`
	Dialed       string  `json:"dialed,omitempty"` // the dialed address, if it differs from To
	Video        bool    `json:"video"`
	GatewayID    string  `json:"gateway_id,omitempty"`
	RoomSession  string  `json:"room_session_id,omitempty"`
	RecordingSid string  `json:"recording_sid,omitempty"`
	CreatedAt    string  `json:"created_at"`
	AnsweredAt   *string `json:"answered_at"`
	EndedAt      *string `json:"ended_at"`
	Duration     int     `json:"duration"` // seconds between answer and end
	Quality      *Report `json:"quality,omitempty"`
}

// A Report describes the quality of the caller's media. Only a call that has ended and has received
// media has a report.
type Report struct {
	Transport   string  `json:"transport"`
	Packets     int64   `json:"packets"`
	Lost        int64   `json:"lost"`
	JitterMs    float64 `json:"jitter_ms"`
	RoundTripMs float64 `json:"round_trip_ms"`
	MOS         float64 `json:"mos"` // estimated mean opinion score, 1 to 4.5
}

// Document returns the call's Document.
func (r Record) Document() Document {
	d := Document{
		ID: r.ID, ProjectID: r.ProjectID, State: r.State, Cause: r.Cause.Text, Reason: r.Refusal,
		From: r.From.Address, FromName: r.From.Name, FromID: r.From.SubscriberID,
		To: r.To.Address, ToName: r.To.Name, ToID: r.To.SubscriberID,
		Video: r.Video, GatewayID: r.Gateway, RoomSession: r.RoomSession, RecordingSid: r.RecordingSid,
		Dialed: r.dialedElsewhere(), CreatedAt: instant(r.Created),
		Duration: int(r.Duration(time.Now()).Round(time.Second).Seconds()),
	}
	for _, at := range []struct {
		to   **string
		when time.Time
	}{{&d.AnsweredAt, r.Answered}, {&d.EndedAt, r.Ended}} {
		if !at.when.IsZero() {
			text := instant(at.when)
			*at.to = &text
		}
	}

	if r.State == Completed && r.Received > 0 {
		d.Quality = &Report{
			Transport: r.Transport, Packets: r.Received, Lost: r.Lost,
			JitterMs: milliseconds(r.Jitter), RoundTripMs: milliseconds(r.RoundTrip), MOS: r.mos(),
		}
	}
	return d
}

// dialedElsewhere returns the address that the caller dialed, or "" if it is the one in To.
func (r Record) dialedElsewhere() string {
	path, _, _ := strings.Cut(r.Dialed, "?")
	if path == r.To.Address {
		return ""
	}
	return path
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// mos estimates the mean opinion score with the E-model (ITU-T G.107) for Opus. It considers only
// delay and loss.
func (r Record) mos() float64 {
	delay := milliseconds(r.RoundTrip)/2 + 2*milliseconds(r.Jitter) + 20
	loss := 100 * float64(r.Lost) / float64(r.Received+r.Lost)
	rating := 93.2 - delay/40
	if delay > 160 {
		rating = 93.2 - (delay-120)/10
	}
	rating = min(max(rating-2.5*loss, 0), 100)
	score := 1 + 0.035*rating + rating*(rating-60)*(100-rating)*7e-6
	return float64(int(score*100+0.5)) / 100
}

// EventOf returns the name of the webhook event for s.
func EventOf(s State) fabric.EventName { return fabric.EventName("call." + string(s)) }

// Event returns the webhook event for the call's present state.
func (r Record) Event() (fabric.Event, error) {
	at := r.Created
	switch r.State {
	case InCall:
		at = r.Answered
	case Completed:
		at = r.Ended
	}
	return fabric.NewEvent(EventOf(r.State), r.ProjectID, r.ID, at, r.webhookDocument())
}

// A RecordingReport is the data of [fabric.CallRecordingCompleted].
type RecordingReport struct {
	Document
	Recording ReportedRecording `json:"recording"`
}

// A ReportedRecording is a recording that is ready to be fetched.
type ReportedRecording struct {
	Sid      string  `json:"sid"`      // the beginning of the Sid
	Duration float64 `json:"duration"` // seconds
}

// RecordingEvent returns the webhook event for a recording of the call that was completed at the
// given time.
func (r Record) RecordingEvent(sid string, length time.Duration, at time.Time) (fabric.Event, error) {
	return fabric.NewEvent(fabric.CallRecordingCompleted, r.ProjectID, r.ID, at,
		RecordingReport{r.webhookDocument(), ReportedRecording{fabric.HideSid(sid), length.Seconds()}})
}

// webhookDocument returns the call as webhooks receive it. Webhooks need no scope for recordings,
// so they receive only the beginning of a Sid: a complete one may suffice to fetch the media.
func (r Record) webhookDocument() Document {
	d := r.Document()
	if d.RecordingSid != "" {
		d.RecordingSid = fabric.HideSid(d.RecordingSid)
	}
	return d
}

// A Filter selects calls. An empty field selects all calls.
type Filter struct {
	Subscribers []string // calls that any of these subscribers made or received; empty means all calls
	Party       string   // text in the name or the address of a party, or digits of its number
	Guest       string   // the id of the caller's token, if the caller is a guest
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
	// SaveOutbound is like SaveCall, for a call that begins to leave through a gateway. If the call
	// already has a record, SaveOutbound writes only the gateway, the payer and the lines. In the
	// same transaction, it calls admit with the usage so far. If admit returns an error, it writes
	// nothing. Calls of a project are admitted one at a time, so each sees the usage of all earlier
	// calls.
	SaveOutbound(ctx context.Context, r Record, admit func(Usage) error) error
	// OutboundUsage returns the usage of the payer and the project of a call.
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
	// RunningCalls returns the node's calls that have not ended, oldest first. The parameter most
	// limits their number.
	RunningCalls(ctx context.Context, node string, most int) ([]Record, error)
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

// Records gives access to the stored calls of all nodes, running and past. It also works in a
// process that carries no calls, and is safe for concurrent use.
type Records struct{ store Store }

// NewRecords returns Records for the calls in s.
func NewRecords(s Store) *Records { return &Records{s} }

// Find returns a call of a project. If subscriberID is set, Find only returns calls that this
// subscriber made or received.
func (r *Records) Find(ctx context.Context, projectID, subscriberID, id string) (Record, error) {
	if _, err := uuid.Parse(id); err != nil {
		return Record{}, problem.NoSuch("call")
	}
	rec, err := r.store.FindCall(ctx, projectID, id)
	if err != nil {
		return Record{}, err
	}
	if subscriberID != "" && rec.From.SubscriberID != subscriberID && rec.To.SubscriberID != subscriberID {
		return Record{}, problem.NoSuch("call")
	}
	return rec, nil
}

// List returns a page of a project's calls, newest first.
func (r *Records) List(ctx context.Context, projectID string, f Filter, q page.Query) (page.Page[Record], error) {
	return r.store.ListCalls(ctx, projectID, f, q)
}

// HangUp ends a project's call for all members within a second, no matter which node carries it. It
// returns problem.NotFound if the call is unknown or has ended.
func (r *Records) HangUp(ctx context.Context, projectID, id string) error {
	if _, err := uuid.Parse(id); err != nil {
		return problem.NoSuch("call")
	}
	return r.store.AskHangUp(ctx, projectID, id)
}

// Mute mutes or unmutes a member of a room within a second, no matter which node carries the room.
// id is the id of the member's call. Mute returns problem.NotFound if the member is unknown or has
// left.
func (r *Records) Mute(ctx context.Context, projectID, id string, muted bool) error {
	if _, err := uuid.Parse(id); err != nil {
		return problem.NoSuch("member")
	}
	return r.store.AskMute(ctx, projectID, id, muted)
}

// Record notifies the node that carries a running call that the stored status of the call's
// recordings has changed, so that the node's recorder applies it. It returns problem.NotFound if
// the call is unknown or has ended.
func (r *Records) Record(ctx context.Context, projectID, id string) error {
	return r.store.AskRecord(ctx, projectID, id)
}

// Prune deletes the records of calls that ended before the given time, but not their recordings.
func (r *Records) Prune(ctx context.Context, before time.Time) error {
	return r.store.PruneCalls(ctx, before)
}
