package calls

import (
	"context"
	"errors"
)

// save writes the session. If it cannot be written, the session continues, and is written later.
func (r *room) save() {
	if r.unsaved {
		return // saveAgain writes this change, too
	}
	err := r.trySave()
	if err == nil {
		return
	}
	r.calls.log.Error("writing the record of a room session", "room_session_id", r.session.ID, "error", err)
	r.unsaved = true
	go r.recordings.retry(r.saveAgain)
}

// saveAgain writes the session, because it could not be written before. The mailbox waits for the
// database only if the database has just answered a query, and has not been too slow recently.
func (r *room) saveAgain() error {
	if r.calls.slowness.isRecent() {
		return errSlow
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	_, err := r.calls.rooms.store.FindRoom(ctx, r.session.ProjectID, r.session.ID)
	if err != nil {
		return err
	}
	_, err = r.do(context.Background(), func() (Reply, error) {
		err := r.calls.slowness.try(func(ctx context.Context) (int, error) { return 0, r.write(ctx) })
		r.unsaved = err != nil
		return Reply{}, err
	})
	return err
}

// trySave is like write, and limits the time to saveTimeout.
func (r *room) trySave() error {
	return r.calls.slowness.first(r.write)
}

// write writes the session, unless it has ended or another node has taken it over.
func (r *room) write(ctx context.Context) error {
	err := r.calls.rooms.store.SaveRoom(ctx, r.session)
	if errors.Is(err, ErrTaken) {
		return nil
	}
	return err
}
