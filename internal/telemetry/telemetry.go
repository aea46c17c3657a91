// Package telemetry traces requests with OpenTelemetry, and sends the traces to a collector with OTLP
// over HTTP.
//
// A trace begins with a request to the server, or with a request that the server sends, such as a
// webhook. If a caller names a trace (W3C Trace Context), its request continues that trace.
// Receivers of webhooks can continue a trace, too. Database changes, queries, and operations on
// sessions are spans within a trace. Background work is not traced.
//
// Spans contain no values from requests. Queries are recorded with their placeholders, and paths as
// their patterns. The methods that wrap a handler, client or store return it unchanged if the [Tracer] is
// nil, so disabled tracing has no cost.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config configures a Tracer.
type Config struct {
	URL     string            // where traces are posted, such as http://127.0.0.1:4318/v1/traces
	Headers map[string]string // headers of requests to the collector
	Percent int               // percentage of requests that are traced, from 1 to 100
	Version string            // version of the program
	Log     *slog.Logger      // where failures to send traces are logged
}

// A Tracer traces the handlers, clients and stores that its methods wrap. A nil Tracer traces
// nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	context  propagation.TraceContext
}

// flushFor is how long Close waits for a collector that does not answer.
const flushFor = 5 * time.Second

// New returns a Tracer without connecting to the collector. While the collector is unavailable, a
// Tracer keeps a limited number of spans, and drops further spans.
func New(ctx context.Context, c Config) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(c.URL),
		otlptracehttp.WithHeaders(c.Headers),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		c.Log.Warn("sending traces", "error", err)
	}))

	// A caller may disable tracing for its request, but cannot enable it beyond the configured share.
	share := sdktrace.TraceIDRatioBased(float64(c.Percent) / 100)
	sampler := sdktrace.ParentBased(share, sdktrace.WithRemoteParentSampled(share))
	node := resource.NewSchemaless(
		attribute.String("service.name", "selvage"),
		attribute.String("service.version", c.Version),
		attribute.String("service.instance.id", uuid.NewString()),
	)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sampler),
		sdktrace.WithResource(node),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/selvage/selvage")}, nil
}

// Close sends the spans that have ended, and stops tracing.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushFor)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last traces: %w", err)
	}
	return nil
}

// start begins a span within the trace of ctx. If ctx has no trace, or one that is not recorded, ok
// is false.
func (t *Tracer) start(ctx context.Context, name string, attrs ...attribute.KeyValue) (span trace.Span, ok bool) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil, false
	}
	_, span = t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	return span, true
}
