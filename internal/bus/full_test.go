package bus_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/bus"
)

// A silentTransport carries nothing.
type silentTransport struct{}

func (silentTransport) Publish(context.Context, string, []byte) error          { return nil }
func (silentTransport) Listen(ctx context.Context, _ []string, _ func([]byte)) { <-ctx.Done() }

// TestFull shows that too many events are dropped with one line in the log, and leave room in the
// queue for requests. The bus does not run, so its queue only fills.
func TestFull(t *testing.T) {
	var log bytes.Buffer
	b := bus.New(bus.Config{
		Node:       "one",
		Transports: []bus.Transport{silentTransport{}},
		Log:        slog.New(slog.NewTextHandler(&log, nil)),
	})
	for range 5000 {
		b.Send("two", "event", "hello")
	}
	if n := strings.Count(log.String(), "\n"); b.Dropped() == 0 || n != 1 {
		t.Errorf("%d messages were dropped with %d lines in the log, want 1 line", b.Dropped(), n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel() // do not wait for an answer
	var answer string
	if err := b.Ask(ctx, "two", "question", nil, &answer); err == nil || strings.Contains(err.Error(), "too many") {
		t.Errorf("a request while the queue is full of events = %v, want no answer", err)
	}
}
