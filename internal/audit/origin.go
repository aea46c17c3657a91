package audit

import (
	"context"
	"time"
)

// An Origin describes where a change comes from. The context of each request, command and
// background task has one. The actor is filled in once it is known.
type Origin struct {
	Actor     Actor
	Address   string
	Agent     string // the User-Agent of a browser
	RequestID string
	Reason    string // why, if the change is a consequence of something else
}

type originKey struct{}

// With returns a context that carries an origin.
func With(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// From returns the origin in a context, or that of the server itself if there is none.
func From(ctx context.Context) Origin {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		return *o
	}
	return Origin{Actor: Actor{Kind: System}}
}

// As records the verified caller in the origin of a request. Until then, one goroutine
// serves the request, so no lock is needed.
func As(ctx context.Context, kind ActorKind, id string) {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		o.Actor = Actor{kind, id}
	}
}

// Facts returns what the owner of an account is told about a change: when and from where it
// was made, or that the operators of the server made it.
func (o Origin) Facts(at time.Time) map[string]string {
	facts := map[string]string{"when": at.UTC().Format(time.RFC3339)}
	switch o.Actor.Kind {
	case Anonymous, Subscriber:
		facts["agent"], facts["address"] = o.Agent, o.Address
	default:
		facts["by"] = "others"
	}
	return facts
}

// Because returns a context whose changes have a reason, such as the reuse of a refresh
// token.
func Because(ctx context.Context, reason string) context.Context {
	o := From(ctx)
	o.Reason = reason
	return With(ctx, &o)
}

// From fills in the fields of the event that describe its origin, unless they are set.
func (e *Event) From(o Origin) {
	if e.Actor.Kind == "" {
		e.Actor = o.Actor
	}
	if e.Address == "" {
		e.Address = o.Address
	}
	if e.RequestID == "" {
		e.RequestID = o.RequestID
	}
	if o.Reason != "" && e.Detail["reason"] == "" {
		e.Add("reason", o.Reason)
	}
}
