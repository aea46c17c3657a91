package telemetry

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/selvage/selvage/internal/web"
)

// Handler returns a handler that traces requests to next. It must be called by [web.Outer].
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := t.context.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
		if id := span.SpanContext(); id.IsSampled() {
			web.NoteTrace(ctx, id.TraceID().String())
		}

		traced := r.WithContext(ctx)
		defer func() {
			r.Pattern = traced.Pattern // for the log and the metrics
			endRequest(span, traced, web.Status(w))
		}()
		next.ServeHTTP(w, traced)
	})
}

// endRequest ends the span of a request that was answered with status.
func endRequest(span trace.Span, r *http.Request, status int) {
	defer span.End()
	if !span.IsRecording() {
		return
	}

	if r.Pattern != "" {
		_, route, _ := strings.Cut(r.Pattern, "/")
		span.SetName(r.Method + " /" + route)
		span.SetAttributes(attribute.String("http.route", "/"+route))
	}
	span.SetAttributes(
		attribute.String("http.request.method", r.Method),
		attribute.Int("http.response.status_code", status),
		attribute.String("selvage.request_id", web.RequestID(r.Context())),
	)
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
}

// Client returns a copy of c that traces its requests and sends the trace id to their receivers.
// The spans are named after the parameter what, such as webhook.
func (t *Tracer) Client(what string, c *http.Client) *http.Client {
	if t == nil {
		return c
	}
	traced := *c
	traced.Transport = &transport{t: t, what: what, next: c.Transport}
	return &traced
}

// A transport traces requests.
type transport struct {
	t    *Tracer
	what string
	next http.RoundTripper
}

// RoundTrip sends a request within a span, which ends when the header of the response arrives.
func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := tr.t.tracer.Start(r.Context(), tr.what,
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("http.request.method", r.Method),
			attribute.String("server.address", r.URL.Hostname()),
		))
	defer span.End()

	r = r.Clone(ctx)
	tr.t.context.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := tr.next.RoundTrip(r)
	if err != nil {
		span.SetStatus(codes.Error, "no response")
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	return resp, nil
}
