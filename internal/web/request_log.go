package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// At most refusalRate refusals per second are logged on average, in bursts of up to refusalBurst, so
// that a client that sends invalid requests as fast as it can does not fill the disk with log lines.
const (
	refusalRate  = 100
	refusalBurst = 1000
)

// maxCause is the maximum length, in bytes, of a logged cause.
const maxCause = 500

// routine lists the codes of errors that are part of normal operation: polling for a device code,
// and requesting a DPoP nonce. They are only logged at debug level.
var routine = []string{"authorization_pending", "use_dpop_nonce"}

// A requestLog logs the requests of a listener.
type requestLog struct {
	log      *slog.Logger
	refusals *rate.Limiter
	now      func() time.Time
	unlogged atomic.Int64 // refusals above the limit since a request was last logged
}

func newRequestLog(log *slog.Logger) *requestLog {
	return &requestLog{log: log, refusals: rate.NewLimiter(refusalRate, refusalBurst), now: time.Now}
}

// write logs a request after its response.
func (l *requestLog) write(r *http.Request, w *recorder, v *visit, took time.Duration) {
	level := l.level(w.status, v)
	if !l.log.Enabled(r.Context(), level) {
		return
	}

	// Log the pattern instead of the path, because paths of media are secret.
	attrs := []slog.Attr{slog.String("request_id", v.origin.RequestID), slog.String("method", r.Method),
		slog.String("route", r.Pattern), slog.Int("status", w.status), slog.Int64("bytes", w.bytes),
		slog.Duration("took", took), slog.String("address", Address(r))}
	if v.trace != "" {
		attrs = append(attrs, slog.String("trace_id", v.trace))
	}
	if v.refusal != nil && w.status >= 400 {
		attrs = append(attrs, v.describeRefusal()...)
	}
	if n := l.unlogged.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("refusals_not_logged", n))
	}
	l.log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
}

// level returns the level at which to log a request.
func (l *requestLog) level(status int, v *visit) slog.Level {
	switch {
	case status >= 500:
		return slog.LevelError
	case status < 400 || v.refusal == nil || isRoutine(v.refusal):
		return slog.LevelDebug
	case !l.refusals.AllowN(l.now(), 1):
		l.unlogged.Add(1)
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func isRoutine(err error) bool {
	p := problem.First(err)
	return p != nil && slices.Contains(routine, p.Code)
}

// describeRefusal returns why a request was refused and who sent it, if known.
func (v *visit) describeRefusal() []slog.Attr {
	cause := cmp.Or(problem.Explain(v.refusal), v.refusal.Error())
	if len(cause) > maxCause {
		cause = strings.ToValidUTF8(cause[:maxCause], "") + "…"
	}
	attrs := []slog.Attr{slog.String("cause", cause)}
	if p := problem.First(v.refusal); p != nil && p.Code != "" {
		attrs = append(attrs, slog.String("code", p.Code))
	}

	if by := v.origin.Actor; by.Kind != audit.Anonymous {
		attrs = append(attrs, slog.String("caller", string(by.Kind)), slog.String("caller_id", by.ID))
	}
	return attrs
}
