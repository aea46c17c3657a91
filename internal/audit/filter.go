package audit

import (
	"slices"
	"strings"
	"time"
)

// A Filter selects events. An event has to match every field that is not "" or zero.
type Filter struct {
	ProjectID string
	Action    string // an action, or the part before the dot, such as "client"
	Outcome   Outcome
	Actor     string // an id; the search for operators is faster if ActorKind is set, too
	ActorKind ActorKind
	Target    string   // an id
	Actors    []string // ids, of which one must be the actor's; nil matches all
	Targets   []string // the same for the target
	Anyone    []string // ids, of which one must be the actor's or the target's; nil matches all
	Since     time.Time
	Until     time.Time
}

// Fits reports whether an event matches the filter.
func (f Filter) Fits(e Event) bool {
	switch {
	case f.ProjectID != "" && f.ProjectID != e.ProjectID,
		f.Action != "" && f.Action != e.Action && !strings.HasPrefix(e.Action, f.Action+"."),
		f.Outcome != "" && f.Outcome != e.Outcome,
		f.Actor != "" && f.Actor != e.Actor.ID,
		f.ActorKind != "" && f.ActorKind != e.Actor.Kind,
		f.Target != "" && f.Target != e.Target.ID:
		return false
	case f.Actors != nil && !slices.Contains(f.Actors, e.Actor.ID),
		f.Targets != nil && !slices.Contains(f.Targets, e.Target.ID),
		f.Anyone != nil && !slices.Contains(f.Anyone, e.Actor.ID) && !slices.Contains(f.Anyone, e.Target.ID):
		return false
	case !f.Since.IsZero() && e.At.Before(f.Since),
		!f.Until.IsZero() && !e.At.Before(f.Until):
		return false
	}
	return true
}
