package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

var accessTable = table[recordings.Access]{
	name:    "recording_accesses",
	thing:   "access",
	columns: `id, recording_id, actor, address, format, requests, bytes, first, last`,
	fields: func(a *recordings.Access) []any {
		return []any{&a.ID, &a.RecordingID, &a.Actor, &a.Address, &a.Format, &a.Requests, &a.Bytes, &a.First, &a.Last}
	},
}

// AddAccesses adds accesses. Accesses of the same actor and address in the same hour to the same
// recording and format share a row. Accesses to unknown recordings are ignored.
func (s *Recordings) AddAccesses(ctx context.Context, all []recordings.Access) error {
	return s.change(ctx, audit.None("accesses to media"), func(t tx) error {
		for _, a := range all {
			err := t.Later(ctx, `INSERT INTO recording_accesses (id, recording_id, hour, actor, address, format,
					requests, bytes, first, last)
				SELECT $1, id, $3, $4, $5, $6, $7, $8, $9, $10 FROM recordings WHERE id = $2
				ON CONFLICT (recording_id, hour, actor, address, format) DO UPDATE SET
					requests = recording_accesses.requests + excluded.requests,
					bytes = recording_accesses.bytes + excluded.bytes,
					last = CASE WHEN recording_accesses.last > excluded.last
						THEN recording_accesses.last ELSE excluded.last END`,
				a.ID, a.RecordingID, a.Hour(), a.Actor, a.Address, string(a.Format), a.Requests, a.Bytes,
				micros(a.First), micros(a.Last))
			if err != nil {
				return fmt.Errorf("writing accesses: %w", err)
			}
		}
		return nil
	})
}

// ListAccesses returns a page of the accesses to a recording, latest first.
func (s *Recordings) ListAccesses(
	ctx context.Context, recordingID string, q page.Query,
) (page.Page[recordings.Access], error) {
	l := accessTable.listing(q.From)
	l.desc = true
	l.where.and(`recording_id = $%d`, recordingID)
	return l.page(ctx, s.read(), q)
}
