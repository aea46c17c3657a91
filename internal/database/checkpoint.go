package database

import (
	"context"

	"modernc.org/sqlite"
)

const (
	// checkpointPages is the number of pages in the log after which a checkpoint begins.
	checkpointPages = 4000
	// restPages is how many pages may be left for the writer to move. Moving them takes only a few
	// milliseconds.
	restPages = 200
	// maxPasses is the maximum number of passes of a checkpoint before the writer moves the rest.
	maxPasses = 4
)

// checkpoint moves the log into the file whenever the writer has filled the log. It uses a
// connection of the readers, so changes do not wait for it. Changes that commit meanwhile extend
// the log, so checkpoint repeats until little is left. The writer then moves the rest, and begins
// the log again at the next change.
func (d *file) checkpoint(ctx context.Context) {
	for {
		select {
		case <-d.writer.full:
		case <-ctx.Done():
			return
		}

		for range maxPasses {
			var busy, pages, moved int
			row := d.reads.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
			if err := row.Scan(&busy, &pages, &moved); err != nil {
				_ = d.explain(err) // records damage; SQLite retries other failures at [maxLogPages]
				break
			}
			if busy != 0 || pages-moved <= restPages {
				break
			}
		}
		d.writer.moveRest()
	}
}

// countPages counts the pages that commits have written to the log. It signals full if a checkpoint
// is due.
func (w *writer) countPages() {
	err := w.conn.Raw(func(conn any) error {
		pages, _, err := conn.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, true)
		w.pages += pages
		return err
	})
	if err != nil || w.pages < checkpointPages {
		return // without a count, SQLite begins a checkpoint at [maxLogPages]
	}

	w.pages = 0
	select {
	case w.full <- struct{}{}:
	default: // a checkpoint is already due
	}
}

// moveRest makes the writer move the rest of the log before its next changes.
func (w *writer) moveRest() {
	select {
	case w.rest <- struct{}{}:
	default:
	}
}
