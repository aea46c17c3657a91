package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

// importService copies the completed recordings from a service with a LaML API.
func (im *importer) importService(ctx context.Context, cmd *cobra.Command, base string) error {
	if err := cli.Need(cmd, "account"); err != nil {
		return err
	}
	token, err := im.ReadSecret("API token")
	if err != nil {
		return err
	}
	account, _ := cmd.Flags().GetString("account")
	source := laml.Source{Base: base, AccountID: account, Token: token}

	for r, err := range source.Recordings(ctx) {
		if err != nil {
			return err
		}
		address := source.URL(r)
		if r.Status != recordings.Completed {
			continue
		}
		if im.journal.has(address, 0, time.Time{}) {
			im.files++
			continue
		}

		outcome, err := im.importRemote(ctx, source, r)
		if err == nil {
			err = im.journal.add(address, 0, time.Time{}, outcome.Sid)
		}
		if err := im.report(outcome, err); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// importRemote copies a recording. The URL of the recording is its idempotency key, so the recording is
// imported only once.
func (im *importer) importRemote(
	ctx context.Context, source laml.Source, r laml.SourceRecording,
) (importedFile, error) {
	address := source.URL(r)
	media, err := source.Open(ctx, r)
	if err != nil {
		return importedFile{Path: address}, err
	}
	defer media.Close()
	im.progress.Expect(max(0, media.Size))

	d := im.about
	d.Metadata = r.Metadata
	d.IdempotencyKey = address
	describe := func() (recordings.Description, error) { return d, nil }
	return im.store(ctx, address, media, media.Type, describe)
}

// A journal lists the files that an import has stored, one JSON object per line. A nil journal is
// empty.
type journal struct {
	file   *os.File
	stored map[string]entry
}

// An entry is a line of a journal. A file whose size or time has changed is imported again.
type entry struct {
	Path     string    `json:"path"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	Sid      string    `json:"sid"`
}

// openJournal opens the journal that --resume names, or returns nil without the flag.
func openJournal(cmd *cobra.Command) (*journal, error) {
	name, _ := cmd.Flags().GetString("resume")
	if name == "" {
		return nil, nil
	}

	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}

	j := &journal{file: f, stored: make(map[string]entry)}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line may be incomplete
			j.stored[e.Path] = e
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the journal: %w", err), f.Close())
	}
	return j, nil
}

// has reports whether the journal lists a file with this size and time.
func (j *journal) has(path string, size int64, modified time.Time) bool {
	if j == nil {
		return false
	}
	e, ok := j.stored[path]
	return ok && e.Bytes == size && e.Modified.Equal(modified)
}

// add appends a line. It first writes a line feed, so that the new line does not become part of an
// incomplete line before it. The error is an outageError.
func (j *journal) add(path string, size int64, modified time.Time, sid string) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(entry{Path: path, Bytes: size, Modified: modified, Sid: sid})
	if err != nil {
		return outageError{fmt.Errorf("writing the journal: %w", err)}
	}
	_, err = fmt.Fprintf(j.file, "\n%s", line)
	if err != nil {
		return outageError{fmt.Errorf("writing the journal: %w", err)}
	}
	return nil
}

// Close closes the journal.
func (j *journal) Close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.file.Sync(), j.file.Close())
}
