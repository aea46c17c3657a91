package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/audio"
)

// The outcomes of a file.
const (
	stored    = "stored"
	duplicate = "duplicate" // imported before
	repaired  = "repaired"  // stored, although its header was wrong
	rejected  = "rejected"
)

// An importedFile is the outcome of a file, and a line of JSON.
type importedFile struct {
	Path     string  `json:"path"`
	Sid      string  `json:"sid"`
	Status   string  `json:"status"`
	Duration float64 `json:"duration"`
	Error    string  `json:"error,omitempty"`
}

func (c recordingCommands) recordingImportCommand() *cobra.Command {
	load := cli.Command("import PATH…", "Store audio files, and those in directories", c.withMedia(c.importRecordings))
	load.Flags().String("call-sid", "", "`id` of the recorded call")
	load.Flags().String("subscriber", "", "`id` of the subscriber to whom the recordings belong")
	return load
}

// importRecordings stores one file after the other and prints the outcome of each at once. A
// rejected file does not stop the import, but makes the command fail.
func (c recordingCommands) importRecordings(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	var d recordings.Description
	cli.Set(cmd, "call-sid", &d.CallSid)
	cli.Set(cmd, "subscriber", &d.SubscriberID)

	files, rejects := 0, 0
	progress := c.NewProgress("file")
	defer progress.End()
	for file, err := range audioFiles(args) {
		in := importedFile{Path: file, Status: rejected}
		if err == nil {
			in, err = a.importFile(ctx, p.ID, file, d)
		}
		if err != nil {
			in.Error = rejectReason(err)
			rejects++
		}
		files++
		progress.Step()
		if err := c.printImportedFile(in); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}

	if files == 0 {
		fmt.Fprintln(c.Stderr, "no audio files found")
	}
	return rejection(rejects, files)
}

// rejection returns the error of an import that rejected some of its files.
func rejection(rejects, files int) error {
	switch {
	case rejects == 0:
		return nil
	case files == 1:
		return errors.New("the file was rejected; nothing is stored")
	case rejects == files:
		return fmt.Errorf("all %d files were rejected; nothing is stored", files)
	case rejects == 1:
		return fmt.Errorf("1 of %d files was rejected; the others are stored", files)
	}
	return fmt.Errorf("%d of %d files were rejected; the others are stored", rejects, files)
}

// audioFiles yields the files among paths, and those in directories that are named like audio.
func audioFiles(paths []string) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, root := range paths {
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && (d.IsDir() || path != root && !audio.IsName(path)) {
					return nil
				}
				if !yield(path, err) {
					return fs.SkipAll
				}
				return nil
			})
			if err != nil && !yield(root, err) {
				return
			}
		}
	}
}

func (a *app) importFile(ctx context.Context, projectID, file string, d recordings.Description) (importedFile, error) {
	in := importedFile{Path: file, Status: rejected}
	f, err := os.Open(file)
	if err != nil {
		return in, err
	}
	defer f.Close()
	if d.Path, err = filepath.Abs(file); err != nil {
		return in, fmt.Errorf("finding %s: %w", file, err)
	}

	r, added, err := a.Recordings.Ingest(ctx, recordings.Upload{
		ProjectID: projectID, Body: f, Hints: []string{file},
		Describe: func() (recordings.Description, error) { return d, nil },
	})
	if err != nil {
		return in, err
	}
	in.Sid, in.Duration, in.Status = r.Sid, r.Duration().Seconds(), stored
	switch {
	case !added:
		in.Status = duplicate
	case len(r.Repairs) > 0:
		in.Status = repaired
	}
	return in, nil
}

// printImportedFile prints the outcome of a file as a line.
func (c recordingCommands) printImportedFile(in importedFile) error {
	status, path := cli.Pad(in.Status, len(duplicate)), cli.Sanitize(in.Path)
	switch {
	case c.Output == "json":
		return c.printJSONLine(in)
	case c.Output == "id" && in.Sid == "":
		return nil
	case c.Output == "id":
		_, err := fmt.Fprintln(c.Stdout, in.Sid)
		return err
	case in.Error != "":
		_, err := fmt.Fprintf(c.Stdout, "%s  %s: %s\n", status, path, cli.Sanitize(in.Error))
		return err
	}

	remark := ""
	if in.Status == duplicate {
		remark = ": already stored, nothing was changed"
	}
	length := formatLength(time.Duration(in.Duration * float64(time.Second)))
	_, err := fmt.Fprintf(c.Stdout, "%s  %s  %6s  %s%s\n", status, in.Sid, length, path, remark)
	return err
}

// printJSONLine prints v on one line, even on a terminal.
func (c *commands) printJSONLine(v any) error { return json.NewEncoder(c.Stdout).Encode(v) }

// rejectReason returns the message of an error without its context.
func rejectReason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	if found := problem.First(err); found != nil {
		return found.Message
	}
	return err.Error()
}
