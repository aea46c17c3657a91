// Package audit says what the audit trail is: an event for every change and every
// sign-in decision, and the chains that show whether one was taken out, changed or put in.
//
// An event is written in the transaction that it tells of, so that there is never one
// without the other: where it cannot be written, nothing is changed. That is why the doors
// to the database (change and once of package store) take one, and do not compile without:
//
//	s.change(ctx, audit.Of("client.updated", c.ProjectID, "client", c.ID).With("name", c.Name), func(t tx) error { … })
//	s.once(ctx, audit.None("a lease"), func(t tx) error { … })
//
// What is learned in the transaction alone is put into t.event there; t.event.Drop() is for
// a change that turned out to change nothing. Who did it, from where and in which request is
// in the context: see [Origin]. A decision that changes no row, such as a login refused, is
// written by Store.Record.
//
// Actions are named as events of webhooks are, noun.verbed. A Detail has what tells events
// apart, never what is secret: names of what was changed rather than values, no passwords,
// tokens, keys, codes, cookies, and no hashes of them.
//
// Events lie in lanes, each a chain: the hash of an event is an HMAC over the one before it
// and its own content, under a key that is derived from the master key ([Key]). Whoever can
// write to the database, and no more, can forge none. [Verifier] walks a lane.
package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// An Event is what somebody did, or was refused.
type Event struct {
	ID        string // a UUID of version 7
	At        time.Time
	ProjectID string // "" for what concerns the installation
	Action    string // such as "client.updated"
	Outcome   Outcome
	Actor     Actor
	Target    Target
	Address   string            // of the socket, or as trusted proxies tell it; "" where there was none
	RequestID string            // "" outside of a request
	Detail    map[string]string // what else tells this event from others, nothing secret

	Lane int    // which chain it is in
	Seq  int64  // its place there, from 1
	Hash string // see [Key.Hash]

	none    string
	dropped bool
	read    string // Detail, as it was read
}

// An Outcome is how something ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
)

// An Actor is who did it.
type Actor struct {
	Kind ActorKind
	ID   string
}

// An ActorKind is what an actor is.
type ActorKind string

// The kinds of actors.
const (
	System     ActorKind = "system"     // the server by itself
	CLI        ActorKind = "cli"        // a command; the ID is the user of the machine
	Anonymous  ActorKind = "anonymous"  // a request that has shown no credentials yet
	APIKey     ActorKind = "api_key"    // the ID is that of the key
	Client     ActorKind = "client"     // an OAuth client
	Subscriber ActorKind = "subscriber" // somebody who is signed in, or has a token
	Operator   ActorKind = "operator"
)

// A Target is what it was done to.
type Target struct{ Kind, ID string }

// Of begins the event of something that is done to a target.
func Of(action, projectID, kind, id string) Event {
	return Event{Action: action, Outcome: Done, ProjectID: projectID, Target: Target{kind, id}}
}

// None stands in place of an event where rows change and nobody would ever ask who did
// that: leases, counters, what is swept because its time is over. reason says which.
func None(reason string) Event { return Event{none: reason} }

// With adds facts: names and values in turn. A value that is "" is left out.
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

// Add adds facts as With does, to the event itself.
func (e *Event) Add(facts ...string) { *e = e.With(facts...) }

// Refuse makes it the event of something that was refused, for a reason.
func (e Event) Refuse(reason string) Event {
	e.Outcome = Refused
	return e.With("reason", reason)
}

// By names the actor, where it is another than that of the context.
func (e Event) By(kind ActorKind, id string) Event {
	e.Actor = Actor{kind, id}
	return e
}

// Drop says that nothing was changed after all: the event is not written.
func (e *Event) Drop() { e.dropped = true }

// Unwritten tells whether it is no event: that of None, or one that was dropped.
func (e Event) Unwritten() bool { return e.none != "" || e.dropped }

// Check refuses what is neither an event nor None.
func (e Event) Check() error {
	if e.none == "" && e.Action == "" {
		return fmt.Errorf("a change without its audit event")
	}
	return nil
}

// The most that a text of an event may have: they come from strangers.
const (
	maxText   = 256
	maxDetail = 16
)

// Clean bounds the texts of an event and makes one line of each.
func (e *Event) Clean() {
	for _, text := range []*string{&e.ProjectID, &e.Action, &e.Actor.ID, &e.Target.Kind, &e.Target.ID,
		&e.Address, &e.RequestID} {
		*text = clean(*text)
	}
	if len(e.Detail) == 0 {
		return
	}
	if len(e.Detail) <= maxDetail && isClean(e.Detail) {
		return // what it shares with other events stays as it is
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

// isPlain tells whether a text is as clean leaves it, without a closer look.
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

// DetailText writes the facts as their row has them: a JSON object in the order of their
// names, "" for none. Of an event that was read it is what was read.
func (e Event) DetailText() string {
	if e.read != "" || len(e.Detail) == 0 {
		return e.read
	}
	var room [maxDetail]string
	names := room[:0]
	for name := range e.Detail {
		names = append(names, name)
	}
	slices.Sort(names)
	b := make([]byte, 0, 256)
	for i, name := range names {
		b = append(b, "{,"[min(i, 1)])
		b = quote(append(quote(b, name), ':'), e.Detail[name])
	}
	return string(append(b, '}'))
}

// quote writes a JSON string.
func quote(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			raw, err := json.Marshal(s)
			if err != nil {
				raw = []byte(`""`) // a text has no way to fail
			}
			return append(b, raw...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// ReadDetail reads what DetailText wrote. What somebody else wrote there is one fact without
// a name, and breaks the chain.
func (e *Event) ReadDetail(text string) {
	e.read, e.Detail = text, nil
	if text != "" && json.Unmarshal([]byte(text), &e.Detail) != nil {
		e.Detail = map[string]string{"": text}
	}
}
