package fabric

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// An EventName names what happened.
type EventName string

// The names of events.
const (
	SubscriberCreated EventName = "subscriber.created"
	SubscriberUpdated EventName = "subscriber.updated"
	SubscriberDeleted EventName = "subscriber.deleted"
	SubscriberOnline  EventName = "subscriber.online"
	SubscriberOffline EventName = "subscriber.offline"
	ResourceCreated   EventName = "resource.created"
	ResourceUpdated   EventName = "resource.updated"
	ResourceDeleted   EventName = "resource.deleted"

	CallCreated            EventName = "call.created"
	CallRinging            EventName = "call.ringing"
	CallAnswered           EventName = "call.answered"
	CallEnded              EventName = "call.ended"
	CallRecordingCompleted EventName = "call.recording.completed"

	RoomStarted            EventName = "room.started"
	RoomEnded              EventName = "room.ended"
	RoomRecordingCompleted EventName = "room.recording.completed"
	MemberJoined           EventName = "member.joined"
	MemberLeft             EventName = "member.left"

	MessageCreated     EventName = "message.created"
	MessageUndelivered EventName = "message.undelivered" // the receiver is not online

	// WebhookTest is the event of [Webhooks.Test].
	WebhookTest EventName = "webhook.test"

	// AnyEvent means all events, including those that later versions add.
	AnyEvent EventName = "*"
)

// EventNames returns the events that a webhook can subscribe to.
func EventNames() []EventName {
	return []EventName{
		SubscriberCreated, SubscriberUpdated, SubscriberDeleted, SubscriberOnline, SubscriberOffline,
		ResourceCreated, ResourceUpdated, ResourceDeleted,
		CallCreated, CallRinging, CallAnswered, CallEnded, CallRecordingCompleted,
		RoomStarted, RoomEnded, RoomRecordingCompleted, MemberJoined, MemberLeft,
		MessageCreated, MessageUndelivered,
	}
}

// An Event is sent to webhooks after a change to a subscriber, resource, call, room or message. It is
// written in the same transaction as the change.
type Event struct {
	ID        string
	ProjectID string
	Name      EventName
	Subject   string // the id of the subscriber, resource, call, room session or message
	Created   time.Time
	Body      []byte // the JSON that is sent and signed
}

// A Teller returns the event for a change of a resource.
type Teller func(Resource) (Event, error)

// SubscriberEvent returns the event for a change of a subscriber. s is the subscriber after the
// change or before its deletion.
func SubscriberEvent(name EventName, s Subscriber, at time.Time) (Event, error) {
	return NewEvent(name, s.ProjectID, s.ID, at, DocumentOf(s))
}

// event returns a Teller for changes with the given event name.
func (rs *Resources) event(name EventName, at time.Time) Teller {
	return func(r Resource) (Event, error) {
		return NewEvent(name, r.ProjectID, r.ID, at, Document(rs.KindOf(r), r))
	}
}

// NewEvent returns an event with the given data, which is usually the document that the API returns.
func NewEvent(name EventName, projectID, subject string, at time.Time, data any) (Event, error) {
	e := Event{ID: newID(), ProjectID: projectID, Name: name, Subject: subject, Created: at}
	body, err := eventBody[any]{
		ID: e.ID, Event: e.Name, CreatedAt: at.UTC().Format(timeLayout), ProjectID: e.ProjectID, Data: data,
	}.encode()
	e.Body = body
	return e, err
}

// Nameless removes the profile from the body of an event about a subscriber. It keeps the name of
// the event, and the subscriber's id and times.
func Nameless(body []byte) ([]byte, error) {
	var e eventBody[SubscriberDocument]
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("decoding event: %w", err)
	}
	was := e.Data
	e.Data = DocumentOf(Subscriber{ID: was.ID, ProjectID: was.ProjectID})
	e.Data.CreatedAt = was.CreatedAt
	e.Data.UpdatedAt = was.UpdatedAt
	return e.encode()
}

// An eventBody is an event as it is sent. Data is the document that the API returns.
type eventBody[T any] struct {
	ID        string    `json:"id"`
	Event     EventName `json:"event"`
	CreatedAt string    `json:"created_at"`
	ProjectID string    `json:"project_id"`
	Data      T         `json:"data"`
}

func (e eventBody[T]) encode() ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return bytes.TrimSpace(body.Bytes()), err
}

// timeLayout is the layout of an event's time. It has microseconds, because many events may happen in
// a second.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// checkEvents returns the events with these names, without duplicates. For an unknown name, it
// returns an error. If there are no names, it returns AnyEvent.
func checkEvents(names []string) (events []EventName, err error) {
	if len(names) == 0 {
		return []EventName{AnyEvent}, nil
	}

	for _, name := range names {
		e := EventName(name)
		if e != AnyEvent && !slices.Contains(EventNames(), e) {
			return nil, problem.BadParam("events", "events has the unknown event %q; known are %s, and * for all",
				name, listed(EventNames()))
		}
		if !slices.Contains(events, e) {
			events = append(events, e)
		}
	}

	if slices.Contains(events, AnyEvent) {
		events = []EventName{AnyEvent}
	}

	return events, nil
}

// listed joins names with commas.
func listed[T ~string](names []T) (text string) {
	for i, name := range names {
		if i > 0 {
			text += ", "
		}
		text += string(name)
	}
	return text
}
