package bus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/problem"
)

// A logBuffer keeps a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the log.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestUnsendableAnswer shows that a node that cannot send its answer logs the reason, and that the
// sender of the request receives an error.
func TestUnsendableAnswer(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, tb bus.Transport) {
		var log logBuffer
		name := uuid.NewString()
		b := bus.New(bus.Config{
			Node:       name,
			Secret:     [32]byte{1},
			Transports: []bus.Transport{tb},
			Log:        slog.New(slog.NewTextHandler(&log, nil)),
		})
		for kind, answer := range map[string]any{
			"hello": "hello",
			"func":  func() {},
			"large": strings.Repeat("a", 300<<10),
		} {
			b.Handle(kind, func(context.Context, string, json.RawMessage) (any, error) { return answer, nil })
		}

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Run(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()

		a, _ := start(t, nil, ta)
		meet(t, a, name)
		for _, kind := range []string{"func", "large"} {
			var answer string
			err := a.Ask(t.Context(), name, kind, nil, &answer)
			if err == nil || errors.Is(err, problem.Unavailable) {
				t.Errorf("Ask for %s = %v, want an error that the node failed", kind, err)
			}
			if !strings.Contains(log.String(), "kind="+kind) {
				t.Errorf("the log does not say why the answer to %s failed: %s", kind, log.String())
			}
		}
	})
}

// TestAnswerWhileBusy shows that a node that is answering the maximum number of requests of one kind
// still answers requests of other kinds.
func TestAnswerWhileBusy(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, tb bus.Transport) {
		begun, release := make(chan struct{}), make(chan struct{})
		wait := func(context.Context, string, json.RawMessage) (any, error) {
			begun <- struct{}{}
			<-release
			return nil, nil
		}
		_, name := start(t, map[string]bus.Handler{"wait": wait}, tb)
		a, _ := start(t, nil, ta)
		meet(t, a, name)

		var asking sync.WaitGroup
		defer asking.Wait()
		defer close(release)
		for range bus.Answering {
			asking.Go(func() { _ = a.Ask(t.Context(), name, "wait", nil, nil) }) // may time out
		}
		for range bus.Answering {
			<-begun
		}
		var answer string
		if err := a.Ask(t.Context(), name, "hello", nil, &answer); err != nil {
			t.Errorf("Ask of a node that answers no more requests of another kind = %v, want no error", err)
		}
	})
}
