package audit

import (
	"context"
	"time"
)

// An Origin is where a change comes from. There is one for each request, command and
// background task, in its context; who is known to call is filled in once that is known.
type Origin struct {
	Actor     Actor
	Address   string
	Agent     string // what a browser says that it is
	RequestID string
	Reason    string // why, where one change is the consequence of another thing
}

type originKey struct{}

// With returns the context of an origin.
func With(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// From returns the origin of a context: that of the server itself where there is none.
func From(ctx context.Context) Origin {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		return *o
	}
	return Origin{Actor: Actor{Kind: System}}
}

// As notes in the origin of a request who was found to be calling. Requests are served by
// one goroutine until then.
func As(ctx context.Context, kind ActorKind, id string) {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		o.Actor = Actor{kind, id}
	}
}

// Facts give what somebody is told of a change of its account: when it was, and from
// where, or that others made it, who run the server.
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

// Because returns a context in which changes are made for a reason, such as that a refresh
// token came twice.
func Because(ctx context.Context, reason string) context.Context {
	o := From(ctx)
	o.Reason = reason
	return With(ctx, &o)
}

// From fills in what the event does not say: where it comes from.
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
