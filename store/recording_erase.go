package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage/selvage/recordings"
)

// An erasedRecording is a recording that is tied to a subscriber, or that contains one of the
// subscriber's names.
type erasedRecording struct {
	id       string
	mediaKey string
	from     string
	to       string

	isTied    bool // whether it is tied to the subscriber
	hasOthers bool // whether it is tied to other subscribers
	isDeleted bool
	isHeld    bool // whether a hold protects it from being deleted or changed
}

// eraseRecordings deletes the recordings that are tied only to the subscriber. It removes the
// subscriber's names from other recordings. Recordings on hold remain unchanged, with their ties,
// so that another erasure can find them after the hold has ended.
func (e *erasure) eraseRecordings(ctx context.Context) error {
	found, err := e.findRecordings(ctx)
	if err != nil {
		return err
	}

	for _, r := range found {
		switch {
		case r.isHeld:
			continue
		case r.isTied && !r.hasOthers:
			err = e.deleteRecording(ctx, r)
		default:
			err = e.anonymizeRecording(ctx, r)
		}
		if err != nil {
			return err
		}

		// IndexRecordings adds the words that remain.
		err = e.tx.Later(ctx, `DELETE FROM recording_words WHERE recording_id = $1`, r.id)
		if err != nil {
			return fmt.Errorf("erasing words: %w", err)
		}
	}

	err = e.tx.Later(ctx, `DELETE FROM recording_subscribers WHERE subscriber_id = $1
		AND recording_id IN (SELECT id FROM recordings WHERE project_id = $2 AND (hold = '' OR deleted <> 0))`,
		e.id, e.projectID)
	if err != nil {
		return fmt.Errorf("untying recordings: %w", err)
	}
	return nil
}

// findRecordings finds the recordings that are tied to the subscriber or contain one of the
// subscriber's names.
func (e *erasure) findRecordings(ctx context.Context) ([]erasedRecording, error) {
	scan := func(row scanner) (r erasedRecording, err error) {
		var deleted int64
		var hold string
		err = row.Scan(&r.id, &r.mediaKey, &r.from, &r.to, &deleted, &hold, &r.isTied, &r.hasOthers)
		r.isDeleted = deleted != 0
		r.isHeld = !r.isDeleted && hold != ""
		return r, err
	}

	args := []any{e.projectID, e.id}
	orNamed := "" // the condition that finds recordings by name
	if len(e.names) > 0 {
		in := ` IN (` + params(len(args), len(e.names)) + `)`
		orNamed = ` OR LOWER(from_address)` + in + ` OR LOWER(to_address)` + in
		for _, name := range e.names {
			args = append(args, name)
		}
	}

	const tie = `SELECT 1 FROM recording_subscribers s WHERE s.recording_id = recordings.id AND s.subscriber_id`
	return gather(ctx, e.tx, "finding recordings", scan, `SELECT id, COALESCE(media_key, id), from_address, to_address,
			deleted, hold, EXISTS (`+tie+` = $2), EXISTS (`+tie+` <> $2)
		FROM recordings WHERE project_id = $1
			AND (id IN (SELECT recording_id FROM recording_subscribers WHERE subscriber_id = $2)`+orNamed+`)`, args...)
}

// deleteRecording marks a recording as deleted, unless it is already deleted. It also removes all names
// from the recording, and deletes the recording's callbacks.
func (e *erasure) deleteRecording(ctx context.Context, r erasedRecording) error {
	err := e.tx.Later(ctx, `DELETE FROM callback_deliveries
		WHERE sid = (SELECT sid FROM recordings WHERE id = $1)`, r.id)
	if err != nil {
		return fmt.Errorf("erasing callbacks: %w", err)
	}

	if !r.isDeleted {
		e.result.Media = append(e.result.Media, r.mediaKey)
		e.result.Deleted["recordings"]++
	}
	err = e.tx.Later(ctx, `UPDATE recordings SET deleted = CASE WHEN deleted = 0 THEN $2 ELSE deleted END,
			updated = $2, waits = 0, callback_url = '', from_address = '', to_address = '',
			from_tail = '', to_tail = '', name = '', words = NULL
		WHERE id = $1`, r.id, micros(e.now))
	if err != nil {
		return fmt.Errorf("erasing recording: %w", err)
	}
	return nil
}

// anonymizeRecording removes the subscriber's names, and the name of the file, from a recording that
// remains.
func (e *erasure) anonymizeRecording(ctx context.Context, r erasedRecording) error {
	from := without(e.names, r.from)
	to := without(e.names, r.to)
	if r.isTied || from != r.from || to != r.to {
		e.result.Anonymized["recordings"]++
	}
	err := e.tx.Later(ctx, `UPDATE recordings SET updated = $2, from_address = $3, to_address = $4,
			from_tail = $5, to_tail = $6, name = '', words = NULL
		WHERE id = $1`, r.id, micros(e.now), from, to, recordings.Tail(from), recordings.Tail(to))
	if err != nil {
		return fmt.Errorf("erasing recording: %w", err)
	}
	return nil
}

// without returns the name of a call's party, or "" if names contains it. It ignores the case and a
// query in the name, because clients may append a query.
func without(names []string, party string) string {
	name, _, _ := strings.Cut(strings.ToLower(party), "?")
	if slices.Contains(names, name) {
		return ""
	}
	return party
}
