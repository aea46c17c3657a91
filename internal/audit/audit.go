// Package audit defines the audit trail: an event for every change and every sign-in
// decision, and the hash chains that reveal removed, changed or inserted events.
//
// An event is written in the same transaction as the change that it describes. If the event cannot
// be written, nothing is changed. The functions of package store that change rows (change and once)
// require an event, so a change without one does not compile:
//
//	event := audit.Of("client.updated", c.ProjectID, "client", c.ID).With("name", c.Name)
//	s.change(ctx, event, func(t tx) error { … })
//	s.once(ctx, audit.None("a lease"), func(t tx) error { … })
//
// Facts known only inside the transaction are added to t.event there. t.event.Drop() discards the
// event of a change that turned out to change nothing. The context carries the actor, the address
// and the request: see [Origin]. Store.Record writes the events of decisions that change no row,
// such as a refused login.
//
// Actions are named like webhook events: noun.verbed. The Detail of an event holds further facts. For a
// change, these are the new values of important fields, and the names of the other fields that changed.
// They are never secrets (passwords, tokens, keys, codes or cookies) or hashes of secrets.
//
// Events are stored in lanes. Each lane is a chain: the hash of an event is an HMAC over the
// previous hash and the event's content, with a key derived from the master key ([Key]). Write
// access to the database is therefore not enough to forge an event. A [Verifier] checks a lane.
package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"
)

// An Event records one action and its outcome.
type Event struct {
	ID        string // a UUID of version 7
	At        time.Time
	ProjectID string // "" if the event concerns the whole installation
	Action    string // such as "client.updated"
	Outcome   Outcome
	Actor     Actor
	Target    Target
	Address   string            // the client's network address, which a trusted proxy may have reported; "" if unknown
	RequestID string            // "" if no request caused the event
	Detail    map[string]string // further facts, none of them secret

	Lane int    // the chain that the event belongs to
	Seq  int64  // the event's position in the chain, from 1
	Hash string // see [Key.Hash]

	none    string
	dropped bool
	read    string // the stored text of Detail, if the event was read from the database
}

// An Outcome is the result of an action.
type Outcome string

// The possible values of an Outcome.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
)

// An Actor is the person or program that acted.
type Actor struct {
	Kind ActorKind
	ID   string
}

// An ActorKind is the kind of an actor.
type ActorKind string

// The kinds of actors.
const (
	System            ActorKind = "system"             // the server itself
	CLI               ActorKind = "cli"                // a command; the ID is the name of the system user
	Anonymous         ActorKind = "anonymous"          // a request without verified credentials
	APIKey            ActorKind = "api_key"            // the ID of the key
	IngestKey         ActorKind = "ingest_key"         // the ID of the key
	Client            ActorKind = "client"             // an OAuth client
	RegistrationToken ActorKind = "registration_token" // the ID of the initial access token
	Subscriber        ActorKind = "subscriber"         // a subscriber with a login or a token
	Operator          ActorKind = "operator"
)

// A Target is the thing that was acted on.
type Target struct{ Kind, ID string }

// Of returns an event that records an action on a target.
func Of(action, projectID, kind, id string) Event {
	return Event{Action: action, Outcome: Done, ProjectID: projectID, Target: Target{kind, id}}
}

// None takes the place of an event for changes whose author does not matter, such as leases,
// counters, and deletions of expired rows. The parameter reason names the kind of change.
func None(reason string) Event { return Event{none: reason} }

// With returns e with more facts, passed as alternating names and values. Facts with empty values
// are omitted.
func (e Event) With(facts ...string) Event {
	detail := maps.Clone(e.Detail)
	for i := 0; i+1 < len(facts); i += 2 {
		if facts[i+1] == "" {
			continue
		}
		if detail == nil {
			detail = make(map[string]string, len(facts)/2)
		}
		detail[facts[i]] = facts[i+1]
	}
	e.Detail = detail
	return e
}

// Add is like [Event.With], but adds the facts to e itself.
func (e *Event) Add(facts ...string) { *e = e.With(facts...) }

// AddChanges adds the facts that differ between before and after, which contain the same names in
// the same order. A fact without a value after the change is recorded as "none".
func (e *Event) AddChanges(before, after []string) {
	for i := 0; i+1 < len(after); i += 2 {
		if before[i+1] != after[i+1] {
			e.Add(after[i], cmp.Or(after[i+1], "none"))
		}
	}
}

// Refuse returns a copy of e that records a refused action, with the reason for the refusal.
func (e Event) Refuse(reason string) Event {
	e.Outcome = Refused
	return e.With("reason", reason)
}

// By returns e with the given actor instead of the actor in the context.
func (e Event) By(kind ActorKind, id string) Event {
	e.Actor = Actor{kind, id}
	return e
}

// Drop prevents the event from being written. It is for a change that turned out to change nothing.
func (e *Event) Drop() { e.dropped = true }

// Unwritten reports whether the event will not be written, because it comes from None or was
// dropped.
func (e Event) Unwritten() bool { return e.none != "" || e.dropped }

// Check returns an error if e is neither an event nor the result of [None].
func (e Event) Check() error {
	if e.none == "" && e.Action == "" {
		return fmt.Errorf("a change lacks its audit event")
	}
	return nil
}

// Limits on the texts of an event, which may come from unauthenticated clients.
const (
	maxText   = 256 // bytes
	maxDetail = 16  // facts
)

// Clean shortens the texts of an event to their limits, replaces control characters, and keeps at
// most maxDetail facts.
func (e *Event) Clean() {
	for _, text := range []*string{
		&e.ProjectID,
		&e.Action,
		&e.Actor.ID,
		&e.Target.Kind,
		&e.Target.ID,
		&e.Address,
		&e.RequestID,
	} {
		*text = clean(*text)
	}

	if len(e.Detail) == 0 {
		return
	}
	if len(e.Detail) <= maxDetail && isClean(e.Detail) {
		return // Detail may be shared with other events, so it is not changed in place
	}

	detail := make(map[string]string, len(e.Detail))
	for name, value := range e.Detail {
		if len(detail) < maxDetail {
			detail[clean(name)] = clean(value)
		}
	}
	e.Detail = detail
}

func isClean(detail map[string]string) bool {
	for name, value := range detail {
		if !isPlain(name) || !isPlain(value) {
			return false
		}
	}
	return true
}

// isPlain reports whether s is short and printable ASCII, so that it needs no cleaning.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return len(s) <= maxText
}

func clean(s string) string {
	if isPlain(s) {
		return s
	}
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// DetailText returns the facts as they are stored: a JSON object sorted by name, or "" if there are
// no facts. For an event from the database, it returns the stored text.
func (e Event) DetailText() string {
	if e.read != "" {
		return e.read
	}
	if len(e.Detail) == 0 {
		return ""
	}
	text, _ := json.Marshal(e.Detail) // encoding strings cannot fail
	return string(text)
}

// ReadDetail parses the output of DetailText. Any other text has been tampered with; it becomes one fact
// without a name.
func (e *Event) ReadDetail(text string) {
	e.read, e.Detail = text, nil
	if text != "" && json.Unmarshal([]byte(text), &e.Detail) != nil {
		e.Detail = map[string]string{"": text}
	}
}
