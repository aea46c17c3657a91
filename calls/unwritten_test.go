package calls

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A slowStore is a store that takes some time to write the end of a call. The first attempt fails. It
// counts the ends that it has written.
type slowStore struct {
	Store
	takes        time.Duration
	asked, ended int
}

func (s *slowStore) SaveCall(context.Context, Record) error {
	if s.asked++; s.asked == 1 {
		return errors.New("the database is unavailable")
	}
	time.Sleep(s.takes) // the clock of synctest
	s.ended++
	return nil
}

// TestStopWithManyCalls shows that the ends of all calls are written before the server stops, even if
// there are many, the first attempt to write one fails, and together they take longer than saveTimeout.
func TestStopWithManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &slowStore{takes: 10 * time.Millisecond}
		c := New(Config{
			Store:   rows,
			Rooms:   struct{ RoomStore }{},
			Clients: hungUpClients{},
			Log:     slog.New(slog.DiscardHandler),
		})
		const n = 1000
		for i := range n {
			k := newBareCall(c, strconv.Itoa(i))
			k.recordings.init(c, k, Recorded{CallID: k.id})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go repeat(ctx, func() {
			if len(c.allLegs()) == 0 { // the store knows no requests
				c.useStore(ctx)
			}
		})

		c.Shutdown(ctx)
		if rows.ended != n {
			t.Errorf("%d ends were written, want %d", rows.ended, n)
		}
	})
}

// TestStopWithSlowStore shows that Shutdown leaves time to finish recordings, even if the store writes each
// end just before Shutdown would give up.
func TestStopWithSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{
			Store: &slowStore{takes: saveTimeout * 4 / 5},
			Rooms: struct{ RoomStore }{},
			Log:   slog.New(slog.DiscardHandler),
		})
		for range maxWrites {
			c.ends.add(callEnd{before: &changes{}})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*saveTimeout)
		defer cancel()
		var work sync.WaitGroup
		work.Go(func() { repeat(ctx, func() { c.useStore(ctx) }) })

		c.Shutdown(ctx)
		if err := ctx.Err(); err != nil {
			t.Errorf("the context of the stop ended with %v, want time left", err)
		}
		if c.ends.count() == 0 {
			t.Error("all ends were written, want the store to be too slow")
		}
		cancel()
		work.Wait()
	})
}
