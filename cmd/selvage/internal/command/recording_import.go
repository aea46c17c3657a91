package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/naming"
)

// These are the possible outcomes for a file.
const (
	stored    = "stored"
	duplicate = "duplicate" // the file was imported before
	repaired  = "repaired"  // the file was stored, although its header was wrong
	rejected  = "rejected"
)

// An importedFile is the outcome for a file, as a line of JSON.
type importedFile struct {
	Path     string  `json:"path"`
	Sid      string  `json:"sid"`
	Status   string  `json:"status"`
	Duration float64 `json:"duration"`
	Error    string  `json:"error,omitempty"`
}

const importHelp = `Store audio files, those in directories, or all recordings of another service.

--names, with a preset, and --pattern read details of calls from the names of files. A pattern has
fields in braces: '{domain}/archive/{Y}/{b}/{d}/{uuid}.{ext}'. For call.wav, JSON in call.wav.json
or call.json is read, too. With --resume, files that the journal lists are skipped, and each stored file
is added to it.

--watch stores the files of a directory until the command is stopped. Stored files are moved to the
folder done in that directory. Rejected files are moved to the folder failed, each with a file that
contains the reason. Hidden files, and those without the extension of an audio format, are left alone.

--from takes the address of a service that speaks LaML, such as https://example.signalwire.com. Its
completed recordings are copied, with the details of their calls. The first line of stdin is the API
token.`

func (c recordingCommands) recordingImportCommand() *cobra.Command {
	load := cli.Command("import [PATH…]", "Store audio files, or the recordings of another service",
		c.withMedia(c.importRecordings))
	load.Long = importHelp
	f := load.Flags()
	f.String("call-sid", "", "`id` of the recorded call")
	f.String("subscriber", "", "`id` of the subscriber to whom the recordings belong")
	f.String("names", "", "`preset` that reads the names of files: "+strings.Join(naming.Presets(), ", "))
	f.String("pattern", "", "`pattern` that reads the names of files")
	f.String("resume", "", "`file` that lists the recordings already stored; they are skipped")
	f.String("watch", "", "`directory` whose files are stored when they are finished, and then moved away")
	f.Var(&span.Span{Length: time.Minute, Most: span.Day}, "settle",
		"`time` after the last change of a file in the watched directory until it counts as finished")
	f.String("from", "", "`url` of a service whose recordings are copied")
	f.String("account", "", "`id` of the project or account at this service")
	return load
}

// An importer stores recordings one by one, and prints each outcome immediately.
type importer struct {
	recordingCommands
	app       *app
	projectID string
	about     recordings.Description // description that applies to every recording
	patterns  naming.Patterns
	journal   *journal
	open      func(path string) (*os.File, error)
	progress  *cli.Progress
	files     int
	rejects   int
}

// importRecordings stores files one by one and prints each outcome immediately. A rejected file
// does not stop the import, but the command fails at the end. A failure that is not the fault of a
// file, such as a lost connection to the database, stops the import.
func (c recordingCommands) importRecordings(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	service, _ := cmd.Flags().GetString("from")
	watched, _ := cmd.Flags().GetString("watch")
	sources := 0
	for _, given := range []bool{service != "", watched != "", len(args) > 0} {
		if given {
			sources++
		}
	}
	if sources != 1 {
		return cli.Usagef("%s needs PATH…, or --from, or --watch", cli.Name(cmd))
	}

	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	im := importer{
		recordingCommands: c,
		app:               a,
		projectID:         p.ID,
		open:              os.Open,
		progress:          c.NewProgress("file"),
	}
	cli.Set(cmd, "call-sid", &im.about.CallSid)
	cli.Set(cmd, "subscriber", &im.about.SubscriberID)
	im.patterns, err = flagPatterns(cmd)
	if err != nil {
		return err
	}
	im.journal, err = openJournal(cmd)
	if err != nil {
		return err
	}

	if watched != "" {
		return im.watch(ctx, watched, cli.Span(cmd, "settle"))
	}

	defer im.progress.End()
	if service != "" {
		err = im.importService(ctx, cmd, service)
	} else {
		err = im.importFiles(ctx, args)
	}
	if err := errors.Join(err, im.journal.Close()); err != nil {
		return err
	}
	if im.files == 0 {
		fmt.Fprintln(c.Stderr, "no audio files found")
	}
	return rejection(im.rejects, im.files)
}

// flagPatterns returns the patterns that --names and --pattern describe.
func flagPatterns(cmd *cobra.Command) (all naming.Patterns, err error) {
	if text, _ := cmd.Flags().GetString("pattern"); text != "" {
		p, err := naming.Parse(text)
		if err != nil {
			return nil, cli.Usagef("--pattern: %s", rejectReason(err))
		}
		all = append(all, p)
	}

	if name, _ := cmd.Flags().GetString("names"); name != "" {
		preset, err := naming.Preset(name)
		if err != nil {
			return nil, cli.Usagef("--names: %s", rejectReason(err))
		}
		all = append(all, preset...)
	}
	return all, nil
}

// An outageError is a failure that has nothing to do with the file that was imported.
type outageError struct{ error }

func (e outageError) Unwrap() error { return e.error }

// isOutage reports whether an error of [recordings.Recordings.Ingest] is not the fault of the file.
func isOutage(err error) bool {
	if err == nil || errors.Is(err, errGrowing) {
		return false
	}
	p := problem.First(err)
	return p == nil || p.Kind == problem.Unavailable
}

// report counts and prints the outcome for a file. If err is an outageError, report returns it, and prints
// the outcome only if the recording was stored.
func (im *importer) report(in importedFile, err error) error {
	var outage outageError
	if errors.As(err, &outage) {
		if in.Sid == "" {
			return fmt.Errorf("%s: %w; this recording and those after it were not imported", in.Path, err)
		}
		return errors.Join(im.printImportedFile(in), err) // it is stored, but the journal does not list it
	}
	if err != nil {
		in.Error, in.Status = rejectReason(err), rejected
		im.rejects++
	}
	im.files++
	im.progress.Step()
	return im.printImportedFile(in)
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

// store stores the media of a recording, and returns the outcome for the file with the given name.
func (im *importer) store(
	ctx context.Context, name string, media io.Reader, hint string,
	describe func() (recordings.Description, error),
) (importedFile, error) {
	in := importedFile{Path: name, Status: rejected}
	r, added, err := im.app.Recordings.Ingest(ctx, recordings.Upload{
		ProjectID: im.projectID,
		Body:      im.progress.Reader(media),
		Hints:     []string{hint},
		Imported:  true,
		Describe:  describe,
	})
	if isOutage(err) {
		return in, outageError{err}
	}
	if err != nil {
		return in, err
	}

	in.Sid = r.Sid
	in.Duration = r.Duration().Seconds()
	switch {
	case !added:
		in.Status = duplicate
	case len(r.Repairs) > 0:
		in.Status = repaired
	default:
		in.Status = stored
	}
	return in, nil
}

// printImportedFile prints the outcome of a file on one line.
func (c recordingCommands) printImportedFile(in importedFile) error {
	status := cli.Pad(in.Status, len(duplicate))
	path := cli.Sanitize(in.Path)
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

// rejectReason returns the message of an error without the wrapping context.
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
