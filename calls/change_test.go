package calls

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
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

func (s *hangingStore) SaveRecorded(ctx context.Context, r Record) error { return s.SaveCall(ctx, r) }

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

// TestSlowAtFirst shows that the database counts as too slow once the first attempt to write a change has
// timed out. Otherwise, the mailbox would wait for the second attempt, too.
func TestSlowAtFirst(t *testing.T) {
	for name, write := range map[string]func(k *call){
		"answer": func(k *call) { k.setState(InCall) },
		"change": func(k *call) { writer{k}.write(writer{k}.answer()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			rows := &hangingStore{written: make(chan string)}
			c := New(Config{Node: "node", Store: rows, Log: slog.New(slog.DiscardHandler)})
			k := newBareCall(c, "1")
			k.recordings.init(c, k, Recorded{CallID: "1"})
			k.post(func() {
				write(k)
				if !c.slowness.isRecent() {
					t.Errorf("%s: the database does not count as too slow", name)
				}
				rows.repaired = true
			})
			<-rows.written
		})
	}
}

// A countingStore counts the queries for calls.
type countingStore struct {
	Store
	queries int
}

func (s *countingStore) FindCall(context.Context, string, string) (Record, error) {
	s.queries++
	return Record{}, nil
}

// A countingRoomStore counts the queries for room sessions.
type countingRoomStore struct {
	RoomStore
	queries int
}

func (s *countingRoomStore) FindRoom(context.Context, string, string) (RoomSession, error) {
	s.queries++
	return RoomSession{}, nil
}

// TestNoQueryWhileSlow shows that calls and rooms do not query a database that was too slow recently,
// because they would not write their changes afterwards.
func TestNoQueryWhileSlow(t *testing.T) {
	rows, rooms := &countingStore{}, &countingRoomStore{}
	c := New(Config{Store: rows, Rooms: rooms})
	c.slowness.note()

	err := writer{newBareCall(c, "1")}.writeLate()
	if !errors.Is(err, errSlow) {
		t.Errorf("writing the changes of a call returned %v, want %v", err, errSlow)
	}
	err = (&room{mailbox: &mailbox{}, calls: c}).saveAgain()
	if !errors.Is(err, errSlow) {
		t.Errorf("writing a room session returned %v, want %v", err, errSlow)
	}
	if rows.queries != 0 || rooms.queries != 0 {
		t.Errorf("%d calls and %d room sessions were queried, want none", rows.queries, rooms.queries)
	}
}

// TestRecordedWhileSlow shows that the mailbox of a call does not wait again and again for a database that
// is too slow to write that the call is being recorded.
func TestRecordedWhileSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &hangingStore{}
		k := newBareCall(New(Config{Store: rows}), "1")
		for _, want := range []error{context.DeadlineExceeded, errSlow, errSlow} {
			if err := k.saveRecorded(true, true); !errors.Is(err, want) {
				t.Errorf("saveRecorded = %v, want %v", err, want)
			}
		}
		if rows.asked != 1 {
			t.Errorf("the call waited for %d attempts, want 1", rows.asked)
		}
	})
}

// A quietRecorder is a recorder of which no recordings are wanted.
type quietRecorder struct{ Recorder }

func (quietRecorder) Wanted(context.Context, Recorded) ([]WantedRecording, error) { return nil, nil }

// TestRecordAgain shows that a request to record a call is not refused because the database was too slow
// when it was last asked. The request fails only if the database is too slow again.
func TestRecordAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &hangingStore{written: make(chan string, 1)}
		c := New(Config{Store: rows, Recorder: quietRecorder{}, Log: slog.New(slog.DiscardHandler)})
		k := newBareCall(c, "1")
		k.record.Recorded = true
		k.recordings.init(c, k, Recorded{CallID: "1"})
		for _, want := range []error{context.DeadlineExceeded, context.DeadlineExceeded} {
			if err := c.Record(t.Context(), "", "1"); !errors.Is(err, want) {
				t.Errorf("Record = %v, want %v", err, want)
			}
		}
		rows.repaired = true
		if err := c.Record(t.Context(), "", "1"); err != nil {
			t.Errorf("Record = %v, after the database was repaired", err)
		}
	})
}

// A fullRecorder is a recorder that cannot store packets.
type fullRecorder struct{ Recorder }

func (fullRecorder) Wanted(context.Context, Recorded) ([]WantedRecording, error) {
	return make([]WantedRecording, 1), nil
}

func (fullRecorder) Start(context.Context, RecordedCall) (Recording, error) { return nil, ErrNotStored }

func (fullRecorder) End(context.Context, Recorded, string) error { return nil }

// TestFullWhileSlow shows that the log contains that packets cannot be stored, even if the database is too
// slow as well.
func TestFullWhileSlow(t *testing.T) {
	var log bytes.Buffer
	c := New(Config{Recorder: fullRecorder{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	c.slowness.note()
	k := newBareCall(c, "1")
	k.unnoted = true
	k.recordings.init(c, k, Recorded{CallID: "1"})
	if err := k.recordings.changeAgain(nil); !errors.Is(err, ErrNotStored) {
		t.Errorf("changeAgain = %v, want %v", err, ErrNotStored)
	}
	if !strings.Contains(log.String(), ErrNotStored.Error()) {
		t.Errorf("the log is %q, want it to contain %q", log.String(), ErrNotStored)
	}
}

// TestSlowChanges shows that a database does not count as too slow for other calls if it writes some
// changes of a call in time, but not all.
func TestSlowChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Node: "node", Store: &hangingStore{}, Log: slog.New(slog.DiscardHandler)})
		k := newBareCall(c, "1")
		slow := change{
			write: func(ctx context.Context, _ Record) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(saveTimeout * 2 / 5): // the clock of synctest
					return nil
				}
			},
			isIn: func(Record) bool { return false },
		}
		k.late = changes{slow, slow, slow}

		err := writer{k}.writeLate()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("writing three changes returned %v, want %v", err, context.DeadlineExceeded)
		}
		if len(k.late) != 1 {
			t.Errorf("%d changes are left, want 1", len(k.late))
		}
		if c.slowness.isRecent() {
			t.Error("the other calls do not write their changes, although the database wrote two changes")
		}
	})
}
