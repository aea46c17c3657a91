package bus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/bus"
)

// A countingTransport counts the messages that it was asked to send. If err is not nil, it refuses them.
type countingTransport struct {
	silentTransport
	tried int
	err   error
}

func (c *countingTransport) Publish(context.Context, string, []byte) error {
	c.tried++
	return c.err
}

// TestRest shows that messages do not wait for a transport that has just failed while another one
// works. The failed transport is tried again later.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &countingTransport{err: errors.New("no answer")}, new(countingTransport)
		b := bus.New(bus.Config{Node: "one", Transports: []bus.Transport{first, second}})
		go b.Run(t.Context())

		const each = 10
		for round := 1; round <= 2; round++ {
			for range each {
				b.Send("two", "event", "hello")
			}
			synctest.Wait()
			if first.tried != round {
				t.Errorf("the failing transport was tried %d times, want %d", first.tried, round)
			}
			if want := round * each; second.tried != want {
				t.Errorf("the working transport got %d messages, want %d", second.tried, want)
			}
			time.Sleep(time.Minute) // the clock of synctest
		}

		first.err = nil
		for range each {
			b.Send("two", "event", "hello")
		}
		synctest.Wait()
		if want := 2 + each; first.tried != want {
			t.Errorf("in the end, the first transport was tried %d times, want %d", first.tried, want)
		}
	})
}
