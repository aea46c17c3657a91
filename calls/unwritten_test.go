package calls

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A slowStore is a store that takes some time to write the end of a call. The first attempt fails. It
// counts the ends that it has written.
type slowStore struct {
	Store
	asked, ended int
}

func (s *slowStore) SaveCall(context.Context, Record) error {
	if s.asked++; s.asked == 1 {
		return errors.New("the database is unavailable")
	}
	time.Sleep(10 * time.Millisecond) // the clock of synctest
	s.ended++
	return nil
}

// TestStopWithManyCalls shows that the ends of all calls are written before the server stops, even if
// there are many, the first attempt to write one fails, and together they take longer than saveTimeout.
func TestStopWithManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &slowStore{}
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
