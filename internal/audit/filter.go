package audit

import (
	"strings"
	"time"
)

// A Filter says which events are wanted: those that fit all that is not "" or zero.
type Filter struct {
	ProjectID string
	Action    string // or the part of actions before their dot, such as "client"
	Outcome   Outcome
	Actor     string // an id; those of operators are found at once where their kind is said
	ActorKind ActorKind
	Target    string // an id
	Since     time.Time
	Until     time.Time
}

// Fits tells whether an event is wanted.
func (f Filter) Fits(e Event) bool {
	for _, c := range [...]struct{ want, is string }{
		{f.ProjectID, e.ProjectID}, {string(f.Outcome), string(e.Outcome)}, {f.Actor, e.Actor.ID},
		{string(f.ActorKind), string(e.Actor.Kind)}, {f.Target, e.Target.ID},
	} {
		if c.want != "" && c.want != c.is {
			return false
		}
	}
	return (f.Action == "" || f.Action == e.Action || strings.HasPrefix(e.Action, f.Action+".")) &&
		(f.Since.IsZero() || !e.At.Before(f.Since)) && (f.Until.IsZero() || e.At.Before(f.Until))
}
