package deliver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A counter is a Queue that only counts settled jobs.
type counter struct {
	Queue
	settled atomic.Int64
}

func (c *counter) Settle(context.Context, Result) error {
	c.settled.Add(1)
	return nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTurnOfSlowReceiver shows that a turn ends in time even if the receiver answers each request just
// before the timeout.
func TestTurnOfSlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := roundTrip(func(*http.Request) (*http.Response, error) {
			time.Sleep(timeout - time.Second)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
		})

		var q counter
		d := New(Config{Queue: &q, Client: &http.Client{Transport: slow}, Log: slog.New(slog.DiscardHandler)})
		v := &visit{d: d, receiver: Receiver{ID: "r", URL: "http://slow.example/"}, began: time.Now()}
		v.write = func(context.Context, Job) (Message, error) { return Message{}, nil }
		jobs := make([]Job, batch)
		for i := range jobs {
			jobs[i] = Job{ID: fmt.Sprint(i), Subject: fmt.Sprint(i)}
		}

		began := time.Now()
		if v.send(t.Context(), jobs) {
			t.Error("send = true, want no more deliveries in this turn")
		}
		if took := time.Since(began); took > turnFor+timeout {
			t.Errorf("the turn took %s, want at most %s", took, turnFor+timeout)
		}
		if n := q.settled.Load(); n == 0 || n > 2*lanes {
			t.Errorf("%d deliveries were sent, want some, and at most %d", n, 2*lanes)
		}
	})
}
