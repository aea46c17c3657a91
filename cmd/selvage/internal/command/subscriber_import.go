package command

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/spf13/cobra"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

func (c *commands) subscriberImportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "import FILE.csv", Short: "Make subscribers of a CSV file, with the hashes of their passwords",
		Args: cli.Arguments("FILE.csv"), RunE: c.with(c.importSubscribers),
		Long: "Makes a subscriber of each line of a CSV file, or of stdin where it is named -, one after the other, and says what became of it.\n" +
			"The first line names the columns: email, which each needs, and any of password_hash, " +
			strings.Join(slices.Sorted(slices.Values(profileColumns())), ", ") + ",\n" +
			"email_verified and disabled (true or false). A password_hash is one of bcrypt, scrypt, PBKDF2 or argon2id; it is made anew when its\n" +
			"subscriber signs in. Who is there already stays as it is, so that an import can be repeated. At the end it is told how many\n" +
			"were made, were there, and were rejected for which column.",
	}
}

// profileColumns are the columns of a profile: its flags, as members of JSON are written.
func profileColumns() (all []string) {
	for _, p := range profileFlags {
		all = append(all, strings.ReplaceAll(p.flag, "-", "_"))
	}
	return all
}

// What became of a line, beside rejected.
const (
	created = "created"
	exists  = "exists" // the e-mail has a subscriber already, which was left as it is
)

// An importedSubscriber is what became of a line, one line of JSON each.
type importedSubscriber struct {
	Line   int    `json:"line"`
	Email  string `json:"email"`
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}

func (c *commands) importSubscribers(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	file := io.NopCloser(c.Stdin)
	if args[0] != "-" {
		if file, err = os.Open(args[0]); err != nil {
			return fmt.Errorf("reading subscribers: %w", err)
		}
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.ReuseRecord, r.TrimLeadingSpace = true, true
	columns, err := importColumns(r)
	if err != nil {
		return err
	}
	sum := importSum{why: make(map[string]int)}
	far := c.NewProgress("line")
	defer far.End()
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return c.endImport(sum)
		}
		far.Step()
		in := importedSubscriber{Status: rejected}
		in.Line, _ = r.FieldPos(0)
		if err == nil || errors.Is(err, csv.ErrFieldCount) {
			in, err = a.importSubscriber(ctx, p.ID, columns, record, in, err)
		}
		if err != nil {
			in.Error = reason(err)
		}
		sum.add(in, err)
		if err := c.printImportedSubscriber(in); err != nil {
			return err
		}
		var syntax *csv.ParseError
		if errors.As(err, &syntax) && !errors.Is(err, csv.ErrFieldCount) {
			return fmt.Errorf("reading subscribers: %w; what stands behind was not read", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// importColumns reads the first line.
func importColumns(r *csv.Reader) ([]string, error) {
	record, err := r.Read()
	if err != nil {
		return nil, cli.Usagef("the first line must name the columns: %v", err)
	}
	known := append(profileColumns(), "email", "password_hash", "email_verified", "disabled")
	columns := make([]string, len(record))
	for i, name := range record {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))) // a spreadsheet's mark of UTF-8
		if !slices.Contains(known, name) {
			return nil, cli.Usagef("there is no column %q%s", name,
				suggest.MeantOr(name, known, "there are "+strings.Join(known, ", ")))
		}
		if slices.Contains(columns, name) {
			return nil, cli.Usagef("the column %q is there twice", name)
		}
		columns[i] = name
	}
	if !slices.Contains(columns, "email") {
		return nil, cli.Usagef("there must be a column email")
	}
	return columns, nil
}

// importSubscriber makes the subscriber of a line.
func (a *app) importSubscriber(ctx context.Context, projectID string, columns, record []string, done importedSubscriber, wrong error) (importedSubscriber, error) {
	if i := slices.Index(columns, "email"); i < len(record) {
		done.Email = strings.Clone(record[i])
	}
	if wrong != nil {
		return done, fmt.Errorf("it has %d fields, and the first line %d", len(record), len(columns))
	}
	in, err := importInput(columns, record)
	if err != nil {
		return done, err
	}
	s, err := a.Fabric.Subscribers.Create(ctx, projectID, in)
	if p := problem.First(err); p != nil && p.Kind == problem.Conflict && p.Param == "email" {
		done.Status = exists
		return done, nil
	}
	if err == nil {
		done.Status, done.ID = created, s.ID
	}
	return done, err
}

// importInput reads a line. An empty field says nothing.
func importInput(columns, record []string) (in fabric.SubscriberInput, err error) {
	for i, text := range record {
		text = strings.Clone(text)
		if text == "" {
			continue
		}
		switch name := columns[i]; name {
		case "email":
			in.Email = &text
		case "password_hash":
			in.PasswordHash = &text
		case "email_verified", "disabled":
			yes, bad := strconv.ParseBool(text)
			if bad != nil {
				err = errors.Join(err, problem.BadParam(name, "%s must be true or false", name))
			}
			if name == "disabled" {
				in.Disabled = &yes
			} else {
				in.Verified = &yes
			}
		default:
			at := slices.Index(profileColumns(), name)
			*profileFlags[at].field(&in.Profile) = &text
		}
	}
	return in, err
}

// printImportedSubscriber prints a line as soon as it is done.
func (c *commands) printImportedSubscriber(in importedSubscriber) (err error) {
	switch {
	case c.Output == "json":
		err = json.NewEncoder(c.Stdout).Encode(in)
	case c.Output == "id" && in.ID != "":
		_, err = fmt.Fprintln(c.Stdout, in.ID)
	case c.Output == "id":
	case in.Error != "":
		_, err = fmt.Fprintf(c.Stdout, "%s  line %d, %s: %s\n", cli.Pad(in.Status, len(rejected)), in.Line,
			cli.Sanitize(in.Email), cli.Sanitize(in.Error))
	default:
		_, err = fmt.Fprintf(c.Stdout, "%s  %s\n", cli.Pad(in.Status, len(rejected)), cli.Sanitize(in.Email))
	}
	return err
}

// An importSum counts what became of the lines of an import.
type importSum struct {
	lines, created, exists, rejected int
	why                              map[string]int // lines that were rejected, by the column that was wrong
}

func (s *importSum) add(in importedSubscriber, err error) {
	s.lines++
	switch in.Status {
	case created:
		s.created++
	case exists:
		s.exists++
	default:
		s.rejected++
	}
	if err == nil {
		return
	}
	columns := make(map[string]bool)
	for _, p := range problem.All(err) {
		columns[cmp.Or(p.Param, "the account")] = true
	}
	if len(columns) == 0 {
		columns["the line itself"] = true
	}
	for name := range columns {
		s.why[name]++
	}
}

func (s importSum) String() string {
	text := fmt.Sprintf("%s: %d created, %d there already, %d rejected", cli.Plural(s.lines, "line"), s.created,
		s.exists, s.rejected)
	before := " for "
	for _, name := range slices.Sorted(maps.Keys(s.why)) {
		text += fmt.Sprintf("%s%s (%d)", before, name, s.why[name])
		before = ", "
	}
	return text
}

// endImport tells what became of all lines; those that were rejected are an error.
func (c *commands) endImport(s importSum) error {
	fmt.Fprintln(c.Stderr, s)
	if s.rejected == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d lines were rejected; who is on the others is there", s.rejected, s.lines)
}
