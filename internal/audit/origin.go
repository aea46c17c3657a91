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
	Reason    string // why the change was made, if it is a consequence of something else
}

type originKey struct{}

// With returns a context that carries o.
func With(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// From returns the origin in ctx, or the server itself as the origin if ctx has none.
func From(ctx context.Context) Origin {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		return *o
	}
	return Origin{Actor: Actor{Kind: System}}
}

// As records the verified caller in the origin of a request. It takes no lock, because only one
// goroutine serves the request before the caller is verified.
func As(ctx context.Context, kind ActorKind, id string) {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		o.Actor = Actor{kind, id}
	}
}

// Facts returns the facts that an account's owner learns about a change. They contain the time and,
// if the owner may have made the change, the browser and the address. Otherwise they say that
// others made it.
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

// Because returns a context in which reason is recorded as the cause of changes, such as the reuse
// of a refresh token.
func Because(ctx context.Context, reason string) context.Context {
	o := From(ctx)
	o.Reason = reason
	return With(ctx, &o)
}

// From fills in the event's fields about its origin, unless they are set.
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
