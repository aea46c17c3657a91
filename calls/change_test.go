package calls

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A hangingStore is a store that answers queries, but hangs when it writes a call. Once it is repaired,
// it reports the calls that it writes.
type hangingStore struct {
	Store
	asked    int
	repaired bool
	written  chan string
}

func (s *hangingStore) SaveCall(ctx context.Context, r Record) error {
	s.asked++
	if !s.repaired {
		<-ctx.Done()
		return ctx.Err()
	}
	s.written <- r.ID
	return nil
}

func (s *hangingStore) FindCall(context.Context, string, string) (Record, error) {
	return Record{Node: "node"}, nil
}

// TestHangingStore shows that the mailbox of a room does not wait again and again for a database that
// answers queries but hangs when it writes. Once it works again, the answers of all members are written.
func TestHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &hangingStore{written: make(chan string)}
		c := New(Config{Node: "node", Store: rows, Log: slog.New(slog.DiscardHandler)})
		ids := []string{"1", "2", "3"}
		room := &mailbox{}
		for _, id := range ids {
			k := newBareCall(c, id)
			k.record.ID = id
			k.box.Store(room)
			k.recordings.init(c, k, Recorded{CallID: id})
			k.post(func() { writer{k}.writeLater(writer{k}.answer()) })
		}

		time.Sleep(slowPause) // the clock of synctest
		synctest.Wait()
		done := make(chan struct{})
		room.post(func() {
			if rows.asked != 1 {
				t.Errorf("the room waited for %d attempts to write an answer, want 1", rows.asked)
			}
			rows.repaired = true
			close(done)
		})
		<-done
		written := make(map[string]bool)
		for range ids {
			written[<-rows.written] = true
		}
		if len(written) != len(ids) {
			t.Errorf("the answers of the members %v were written, want those of %v", written, ids)
		}
	})
}
