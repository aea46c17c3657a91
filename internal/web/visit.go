package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// statusClientLeft is logged and counted for a request whose client has closed the connection. No client
// receives this status. nginx uses the same status.
const statusClientLeft = 499

// errClientLeft is logged as the cause for a request whose client has closed the connection.
var errClientLeft = problem.New(problem.Malformed, "client_closed_request",
	"the client closed the connection before the response")

// A visit holds what middleware and handlers find out about a request, for the log.
type visit struct {
	origin  audit.Origin
	trace   string // id of the trace, or ""
	refusal error  // why an API refused the request, or nil
}

type visitKey struct{}

// withVisit returns a request that has just arrived with a new visit in its context.
func withVisit(r *http.Request) (*http.Request, *visit) {
	v := &visit{origin: audit.Origin{
		Actor:     audit.Actor{Kind: audit.Anonymous},
		Address:   Address(r),
		Agent:     userAgent(r),
		RequestID: newID(),
	}}
	ctx := audit.With(r.Context(), &v.origin)
	return r.WithContext(context.WithValue(ctx, visitKey{}, v)), v
}

// NoteTrace records the id of the trace to which the request of ctx belongs, for the log.
func NoteTrace(ctx context.Context, id string) {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.trace = id
	}
}

// Refuse records that an API refuses the request to which ctx belongs because of err. [Outer] then
// adds the code and the cause of err to its log line for the request, and usually logs it at level
// info. If Refuse is called more than once, the last err counts. Only the goroutine that serves the
// request may call Refuse.
func Refuse(ctx context.Context, err error) {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.refusal = err
	}
}

// HasClientLeft reports whether the client of the request of ctx closed the connection, and err is only a
// consequence of that.
func HasClientLeft(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil
}
