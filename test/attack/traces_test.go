package attack

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/selvage/selvage/test/harness"
)

// A standIn is an OTLP collector that checks each request against the protocol's specification
// (OTLP 1.10, sections "OTLP/HTTP" and "Trace"), and keeps the spans.
type standIn struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	raw   []byte // all spans as they were sent
	fault error
}

func (c *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.take(r); err != nil {
		c.fault = errors.Join(c.fault, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := proto.Marshal(&collector.ExportTraceServiceResponse{})
	if err != nil {
		c.fault = errors.Join(c.fault, err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body)
}

// take reads and checks a request.
func (c *standIn) take(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("X-Tenant") != "acme" {
		return fmt.Errorf("unexpected request: %s %s with %v", r.Method, r.URL, r.Header)
	}

	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		body = unzipped
	}

	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}

	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &sent); err != nil {
		return err
	}

	c.raw = append(c.raw, raw...)
	for _, res := range sent.ResourceSpans {
		if !strings.Contains(res.Resource.String(), "service.name") {
			return fmt.Errorf("the resource has no name: %v", res.Resource)
		}
		for _, scope := range res.ScopeSpans {
			for _, s := range scope.Spans {
				if err := checkSpan(s); err != nil {
					return err
				}
				c.spans = append(c.spans, s)
			}
		}
	}
	return nil
}

// checkSpan checks that a span meets the requirements of the specification.
func checkSpan(s *tracepb.Span) error {
	none := func(id []byte) bool { return len(bytes.Trim(id, "\x00")) == 0 }
	switch {
	case len(s.TraceId) != 16 || none(s.TraceId) || len(s.SpanId) != 8 || none(s.SpanId):
		return fmt.Errorf("the trace or span id of %v is invalid", s)
	case len(s.ParentSpanId) != 0 && len(s.ParentSpanId) != 8:
		return fmt.Errorf("the parent of %v is invalid", s)
	case s.Name == "" || s.Kind == tracepb.Span_SPAN_KIND_UNSPECIFIED:
		return fmt.Errorf("%v has no name or kind", s)
	case s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano:
		return fmt.Errorf("the times of %v are invalid", s)
	case len(s.ProtoReflect().GetUnknown()) > 0:
		return fmt.Errorf("%v has unknown fields", s)
	}
	return nil
}

// find returns the first span whose name has a prefix, or nil. It searches one trace or, if trace
// is "", all traces.
func (c *standIn) find(trace, prefix string) *tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if (trace == "" || hex.EncodeToString(s.TraceId) == trace) && strings.HasPrefix(s.Name, prefix) {
			return s
		}
	}
	return nil
}

// parent returns the parent of the span s, or nil.
func (c *standIn) parent(s *tracepb.Span) *tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.spans {
		if bytes.Equal(p.TraceId, s.TraceId) && bytes.Equal(p.SpanId, s.ParentSpanId) {
			return p
		}
	}
	return nil
}

// await waits until find finds a span.
func (c *standIn) await(t *testing.T, trace, prefix string) (s *tracepb.Span) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the span "+prefix, func() error {
		if s = c.find(trace, prefix); s == nil {
			return errors.New("the span has not been sent")
		}
		return nil
	})
	return s
}

// TestTraces shows that requests, changes, queries, sessions and webhooks are traced to a
// collector. A trace continues its caller's trace, and receivers of webhooks get the trace's ID.
// The log contains the IDs of traces. Traces contain no secrets.
func TestTraces(t *testing.T) {
	c := new(standIn)
	at := httptest.NewServer(c)
	t.Cleanup(at.Close)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_TELEMETRY__OTLP_ENDPOINT=" + at.URL,
		"SELVAGE_TELEMETRY__OTLP_HEADERS=X-Tenant=acme", "SELVAGE_EGRESS__ALLOW=localhost"}})
	p := s.NewProject(t)

	// This request is part of its caller's trace.
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	within := harness.Header("Traceparent", "00-"+trace+"-"+parent+"-01")
	a := s.Post(t, "/api/fabric/resources/subscribers", p.Basic(), within,
		harness.JSON(map[string]any{"email": "ada@example.org", "password": "hush hush hush 42"})).Want(t, 201)
	root := c.await(t, trace, "POST /api/fabric/resources/subscribers")
	if hex.EncodeToString(root.ParentSpanId) != parent || root.Kind != tracepb.Span_SPAN_KIND_SERVER ||
		!strings.Contains(root.String(), a.Header.Get("X-Request-Id")) {
		t.Errorf("the request's span is %v, want the caller's span as its parent, and the request ID in it",
			root)
	}
	insert := c.await(t, trace, "INSERT subscribers")
	if change := c.parent(insert); change == nil || !strings.HasPrefix(change.Name, "change") ||
		!bytes.Equal(change.ParentSpanId, root.SpanId) {
		t.Errorf("the query %v has the parent %v, want a change whose parent is the request", insert, change)
	}

	// The second of these requests is refused, and its log line contains the trace's ID. The caller
	// of the first request has excluded it from tracing.
	const refused, unwanted = "1af7651916cd43dd8448eb211c80319c", "2af7651916cd43dd8448eb211c80319c"
	s.Get(t, "/api/fabric/resources/subscribers", harness.Basic(p.ID, "PThush"),
		harness.Header("Traceparent", "00-"+unwanted+"-"+parent+"-00")).Want(t, 401)
	s.Get(t, "/api/fabric/resources/subscribers", harness.Basic(p.ID, "PThush"),
		harness.Header("Traceparent", "00-"+refused+"-"+parent+"-01")).Want(t, 401)
	c.await(t, refused, "GET /api/fabric/resources/subscribers")
	harness.Eventually(t, time.Minute, "the trace in the log", func() error {
		if !strings.Contains(s.Log(), `"trace_id":"`+refused+`"`) {
			return errors.New(s.Log())
		}
		return nil
	})

	// This request for a token uses the session store, because it counts against a limit.
	service := p.NewClient(t, "service")
	service.Token(t, url.Values{"grant_type": {"client_credentials"}}).Want(t, 200)
	c.await(t, "", "session ")

	// This webhook continues the trace of its delivery.
	receiver := harness.NewReceiver(t)
	p.NewWebhook(t, receiver.URL, "subscriber.created")
	p.NewSubscriber(t)
	sent := c.await(t, "", "webhook")
	harness.Eventually(t, time.Minute, "the webhook", func() error {
		for _, delivery := range receiver.Told() {
			if strings.HasPrefix(delivery.Header.Get("Traceparent"), "00-"+hex.EncodeToString(sent.TraceId)) {
				return nil
			}
		}
		return errors.New("no delivery names the trace")
	})

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil {
		t.Error(c.fault)
	}
	if bytes.Contains(c.raw, []byte("hush")) || bytes.Contains(c.raw, []byte(p.Key)) ||
		bytes.Contains(c.raw, []byte("ada@example.org")) {
		t.Error("traces contain secrets")
	}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == unwanted {
			t.Errorf("a request that its caller had excluded from tracing was traced: %v", s)
		}
	}
}
