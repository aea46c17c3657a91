package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Log returns a logger that adds trace_id to lines about a traced request.
func (t *Tracer) Log(log *slog.Logger) *slog.Logger {
	if t == nil {
		return log
	}
	return slog.New(traceIDs{log.Handler()})
}

// traceIDs adds the id of the trace to log records.
type traceIDs struct{ slog.Handler }

func (h traceIDs) Handle(ctx context.Context, r slog.Record) error {
	if id := trace.SpanContextFromContext(ctx); id.IsSampled() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", id.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceIDs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceIDs{h.Handler.WithAttrs(attrs)}
}

func (h traceIDs) WithGroup(name string) slog.Handler { return traceIDs{h.Handler.WithGroup(name)} }
