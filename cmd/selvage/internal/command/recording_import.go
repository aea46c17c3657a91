package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/audio"
	"github.com/spf13/cobra"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// What became of a file.
const (
	stored    = "stored"
	duplicate = "duplicate" // it was imported before
	repaired  = "repaired"  // stored, and its header was wrong
	rejected  = "rejected"
)

// An imported is what became of a file, one line of JSON each.
type imported struct {
	Path     string  `json:"path"`
	Sid      string  `json:"sid"`
	Status   string  `json:"status"`
	Duration float64 `json:"duration"`
	Error    string  `json:"error,omitempty"`
}

func (c *commands) importRecordings(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	callSid, _ := cmd.Flags().GetString("call-sid")
	subscriberID, _ := cmd.Flags().GetString("subscriber")
	d := recordings.Description{Metadata: recordings.Metadata{CallSid: callSid}, SubscriberID: subscriberID}
	files, rejects := 0, 0
	far := c.NewProgress("file")
	defer far.End()
	for file, err := range audioFiles(args) {
		in := imported{Path: file, Status: rejected}
		if err == nil {
			in, err = a.importFile(ctx, p.ID, file, d)
		}
		if err != nil {
			in.Error = reason(err)
			rejects++
		}
		files++
		far.Step()
		if err := c.printImported(in); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if files == 0 {
		fmt.Fprintln(c.Stderr, "there are no files of audio")
	}
	return rejection(rejects, files)
}

// rejection is the error of an import with files that were rejected.
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

// audioFiles yields files as they are named, and in directories those that are
// called like audio.
func audioFiles(paths []string) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, root := range paths {
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
				case d.IsDir(), path != root && !audio.IsName(path):
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

func (a *app) importFile(ctx context.Context, projectID, file string, d recordings.Description) (imported, error) {
	in := imported{Path: file, Status: rejected}
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

// printImported prints a line a file as soon as it is done.
func (c *commands) printImported(in imported) error {
	switch {
	case c.Output == "json":
		return json.NewEncoder(c.Stdout).Encode(in)
	case c.Output == "id" && in.Sid == "":
		return nil
	case c.Output == "id":
		_, err := fmt.Fprintln(c.Stdout, in.Sid)
		return err
	case in.Error != "":
		_, err := fmt.Fprintf(c.Stdout, "%s  %s: %s\n", cli.Pad(in.Status, len(duplicate)), cli.Sanitize(in.Path),
			cli.Sanitize(in.Error))
		return err
	}
	detail := ""
	if in.Status == duplicate {
		detail = ": stored before, nothing was changed"
	}
	took := length(time.Duration(in.Duration * float64(time.Second)))
	_, err := fmt.Fprintf(c.Stdout, "%s  %s  %6s  %s%s\n", cli.Pad(in.Status, len(duplicate)), in.Sid, took,
		cli.Sanitize(in.Path), detail)
	return err
}

// reason returns the sentence of a rejected file.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	if found := problem.First(err); found != nil {
		return found.Message
	}
	return err.Error()
}
