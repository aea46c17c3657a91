package command

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
)

func (c subscriberCommands) subscriberImportCommand() *cobra.Command {
	load := cli.Command("import FILE.csv", "Create subscribers from a CSV file, with hashes of their passwords",
		c.with(c.importSubscribers))
	load.Long = `Create a subscriber from each line of a CSV file, one after the other, and print the outcome of each
line. A file named - is stdin. The first line names the columns: email, which is required, and any of
password_hash, ` + strings.Join(slices.Sorted(slices.Values(profileColumns())), ", ") + `,
email_verified and disabled (true or false), record_calls (inherit, off or on), forward_busy and
forward_no_answer (addresses or phone numbers) and ring_seconds. A password_hash is one of bcrypt,
scrypt, PBKDF2 or argon2id; it is replaced when its subscriber signs in.

Existing subscribers are left unchanged, so an import can be repeated. At the end, the command prints how
many subscribers were created or existed, how many lines were rejected, and because of which columns.`
	return load
}

// profileColumns returns the columns for the profile. They have the names of the JSON members.
func profileColumns() (all []string) {
	for _, f := range fabric.PersonFields {
		all = append(all, f.Name)
	}
	return all
}

// These are the possible outcomes of a line that was not rejected.
const (
	created = "created"
	exists  = "exists" // the subscriber with this email address was left unchanged
)

// An importedSubscriber is the outcome of one CSV line, printed as a line of JSON.
type importedSubscriber struct {
	Line   int    `json:"line"`
	Email  string `json:"email"`
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`

	err error // why the line was rejected
}

// reject returns the outcome of a line that was rejected because of err.
func (s importedSubscriber) reject(err error) importedSubscriber {
	s.Status, s.Error, s.err = rejected, rejectReason(err), err
	return s
}

// importSubscribers creates subscribers one by one and prints the outcome of each line immediately.
// A rejected line does not stop the import, but the command fails at the end. A line that is not
// valid CSV stops the import. A failure that no line has caused also stops it, such as a lost connection
// to the database.
func (c subscriberCommands) importSubscribers(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	file, err := openImport(args[0], c.Stdin)
	if err != nil {
		return err
	}
	defer file.Close()
	in, err := newSubscriberImport(a.Fabric.Subscribers, p.ID, file)
	if err != nil {
		return err
	}

	sum := importSum{why: make(map[string]int)}
	progress := c.NewProgress("line")
	defer progress.End()
	for ctx.Err() == nil {
		line, failure := in.next(ctx)
		if errors.Is(failure, io.EOF) {
			return c.endImport(sum)
		}
		if line.Status == "" { // the line has no outcome
			fmt.Fprintln(c.Stderr, sum)
			return failure
		}
		progress.Step()
		sum.add(line)
		if err := c.printImportedSubscriber(line); err != nil {
			return err
		}
		if failure != nil {
			return failure
		}
	}
	return ctx.Err()
}

// openImport opens a file to import; - is stdin.
func openImport(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading subscribers: %w", err)
	}
	return file, nil
}

// maxImportLine is the maximum length of a line in bytes. A line continues across line breaks inside
// quotes.
const maxImportLine = 1 << 20

var errLongImportLine = fmt.Errorf("a line has more than %d bytes; is a quote missing?", maxImportLine)

// A subscriberImport creates subscribers from the lines of a CSV file.
type subscriberImport struct {
	subscribers *fabric.Subscribers
	projectID   string
	file        *lineReader // read by csv, which has no limit of its own
	csv         *csv.Reader
	columns     []string
}

// newSubscriberImport starts an import of a file, and reads its first line.
func newSubscriberImport(to *fabric.Subscribers, projectID string, file io.Reader) (*subscriberImport, error) {
	limited := &lineReader{from: file}
	r := csv.NewReader(limited)
	r.ReuseRecord = true
	r.TrimLeadingSpace = true
	in := &subscriberImport{subscribers: to, projectID: projectID, file: limited, csv: r}

	names, _, err := in.read()
	if err != nil {
		return nil, cli.Usagef("the first line must name the columns: %v", err)
	}
	in.columns, err = importColumns(names)
	if err != nil {
		return nil, err
	}
	return in, nil
}

// read reads one line and returns its fields and its number.
func (in *subscriberImport) read() (record []string, line int, err error) {
	in.file.left = maxImportLine
	record, err = in.csv.Read()

	var invalid *csv.ParseError
	switch {
	case len(record) > 0:
		line, _ = in.csv.FieldPos(0)
	case errors.As(err, &invalid):
		line = invalid.StartLine
	}
	if in.file.left <= 0 {
		return nil, line, errLongImportLine
	}
	return record, line, err
}

// next imports one line and returns its outcome. It returns io.EOF after the last line. After any
// other error, the rest of the file cannot be read or imported. If the line is not the cause of the
// error, the outcome has no status.
func (in *subscriberImport) next(ctx context.Context) (importedSubscriber, error) {
	record, number, err := in.read()
	if errors.Is(err, io.EOF) {
		return importedSubscriber{}, io.EOF
	}
	line := importedSubscriber{Line: number}

	if err != nil && !errors.Is(err, csv.ErrFieldCount) {
		return line.reject(err), fmt.Errorf("reading subscribers: %w; the lines after it were not read", err)
	}
	if i := slices.Index(in.columns, "email"); i < len(record) {
		line.Email = strings.Clone(record[i])
	}
	if err != nil {
		err = fmt.Errorf("the line has %d fields, but the first line has %d", len(record), len(in.columns))
		return line.reject(err), nil
	}
	return in.create(ctx, line, record)
}

// create creates the subscriber of a well-formed line. It returns an error only for a failure that the
// line did not cause.
func (in *subscriberImport) create(
	ctx context.Context, line importedSubscriber, record []string,
) (importedSubscriber, error) {
	input, err := importInput(in.columns, record)
	if err != nil {
		return line.reject(err), nil
	}

	s, err := in.subscribers.Create(ctx, in.projectID, input)
	p := problem.First(err)
	switch {
	case err == nil:
		line.Status, line.ID = created, s.ID
		return line, nil
	case p == nil, p.Kind == problem.Unavailable:
		return line, fmt.Errorf("line %d: %w; this line and those after it were not imported", line.Line, err)
	case p.Kind == problem.Conflict && p.Param == "email":
		line.Status = exists
		return line, nil
	}
	return line.reject(err), nil
}

// importColumns returns the names in lower case. It rejects unknown and repeated names, and a list
// without email.
func importColumns(names []string) ([]string, error) {
	known := append(profileColumns(), "email", "password_hash", "email_verified", "disabled",
		"record_calls", "forward_busy", "forward_no_answer", "ring_seconds")
	for _, other := range []string{";", "\t"} {
		if strings.Contains(names[0], other) {
			return nil, cli.Usagef("the columns are separated by %q; separate them by commas", other)
		}
	}

	columns := make([]string, len(names))
	for i, name := range names {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))) // byte order mark
		if !slices.Contains(known, name) {
			return nil, cli.Usagef("unknown column %q%s", name,
				suggest.MeantOr(name, known, "use "+strings.Join(known, ", ")))
		}
		if slices.Contains(columns, name) {
			return nil, cli.Usagef("the column %q appears twice", name)
		}
		columns[i] = name
	}

	if !slices.Contains(columns, "email") {
		return nil, cli.Usagef("the column email is missing")
	}
	return columns, nil
}

// importInput returns the fields of a line. Empty fields are skipped.
func importInput(columns, record []string) (fabric.SubscriberInput, error) {
	var in fabric.SubscriberInput
	var errs []error
	for i, text := range record {
		text = strings.Clone(text)
		if text == "" {
			continue
		}

		name := columns[i]
		switch name {
		case "email":
			in.Email = &text
		case "password_hash":
			in.PasswordHash = &text
		case "record_calls":
			in.RecordCalls = (*fabric.RecordCalls)(&text)
		case "forward_busy":
			in.Forwarding.Busy = &text
		case "forward_no_answer":
			in.Forwarding.NoAnswer = &text
		case "ring_seconds":
			seconds, err := strconv.Atoi(text)
			if err != nil {
				errs = append(errs, problem.BadParam(name, "%s must be a number", name))
			}
			in.Forwarding.RingSeconds = &seconds
		case "email_verified", "disabled":
			yes, err := strconv.ParseBool(text)
			if err != nil {
				errs = append(errs, problem.BadParam(name, "%s must be true or false", name))
			}
			if name == "disabled" {
				in.Disabled = &yes
			} else {
				in.Verified = &yes
			}
		default:
			f := fabric.PersonFields[slices.Index(profileColumns(), name)]
			*f.Input(&in.Profile) = &text
		}
	}
	return in, errors.Join(errs...)
}

// printImportedSubscriber prints the outcome of a line.
func (c subscriberCommands) printImportedSubscriber(in importedSubscriber) (err error) {
	switch {
	case c.Output == "json":
		err = c.printJSONLine(in)
	case c.Output == "id" && in.ID != "":
		_, err = fmt.Fprintln(c.Stdout, in.ID)
	case c.Output == "id":
	case in.Error != "":
		_, err = fmt.Fprintf(c.Stdout, "%s  line %d, %s: %s\n",
			cli.Pad(in.Status, len(rejected)), in.Line, cli.Sanitize(in.Email), cli.Sanitize(in.Error))
	default:
		_, err = fmt.Fprintf(c.Stdout, "%s  %s\n", cli.Pad(in.Status, len(rejected)), cli.Sanitize(in.Email))
	}
	return err
}

// endImport prints the totals. It returns an error if lines were rejected.
func (c subscriberCommands) endImport(s importSum) error {
	fmt.Fprintln(c.Stderr, s)
	switch s.rejected {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 of %s was rejected; the others were imported", cli.Plural(s.lines, "line"))
	}
	return fmt.Errorf("%d of %d lines were rejected; the others were imported", s.rejected, s.lines)
}
