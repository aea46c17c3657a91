package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/transfer"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

func (c *commands) importCommand() *cobra.Command {
	cmd := cli.Command("import FILE…", "Create projects, people and apps from exports of selvage, Keycloak or Auth0",
		c.with(c.importFiles))
	cmd.Long = `Create what a file describes, and print the outcome of each record: created, exists or rejected. Things
that exist are left unchanged, so an import can be repeated. Only phone numbers without a
resource are assigned again. A file named - is stdin.

Without --from, the file is one that selvage export wrote. Everything keeps its id.

With --from keycloak, files are realms that kc.sh export wrote. With --from auth0, they are exported users,
the hashes of their passwords, and clients from the Management API, in any order. People and apps are created
in the project of --project. The command also prints what selvage cannot store.`
	f := cmd.Flags()
	f.String("from", "selvage", "the `system` that wrote the files: selvage, keycloak or auth0")
	f.String("project", "", "with --from keycloak or auth0: "+cli.ProjectUsage)
	f.Bool("dry-run", false, "check everything and print the outcomes, but change nothing")
	f.SortFlags = false
	return cmd
}

// importFiles imports files, in the form that --from names.
func (c *commands) importFiles(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	files, err := c.openAll(args)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()

	dry, _ := cmd.Flags().GetBool("dry-run")
	// Importing retention rules needs no media store, and a node without the recordings service has
	// none.
	rules := recordings.New(recordings.Config{Store: a.Store})
	run := &importRun{
		commands: c,
		counts:   make(map[transfer.Status]int),
		to:       &transfer.Importer{Fabric: a.Fabric, IDP: a.IDP, Recordings: rules, Dry: dry},
	}
	run.progress = c.NewProgress("record")
	defer run.progress.End()

	system, _ := cmd.Flags().GetString("from")
	switch system {
	case "keycloak":
		return run.foreign(ctx, a, cmd, files, transfer.Keycloak)
	case "auth0":
		return run.foreign(ctx, a, cmd, files, transfer.Auth0)
	case "selvage":
	default:
		return cli.Usagef("--from must be selvage, keycloak or auth0")
	}
	if cmd.Flags().Changed("project") {
		return cli.Usagef("--project is for --from keycloak and auth0: the things in an export keep their project")
	}
	return run.export(ctx, files, args)
}

// openAll opens files to import; - is stdin.
func (c *commands) openAll(names []string) (files []io.ReadCloser, err error) {
	for _, name := range names {
		if name == "-" {
			files = append(files, io.NopCloser(c.Stdin))
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return files, fmt.Errorf("reading import: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// An importRun imports records and prints their outcomes.
type importRun struct {
	*commands
	to       *transfer.Importer
	progress *cli.Progress
	counts   map[transfer.Status]int
}

// export imports files that `selvage export` wrote.
func (r *importRun) export(ctx context.Context, files []io.ReadCloser, names []string) error {
	for i, f := range files {
		for line, err := range transfer.Read(f) {
			if err != nil {
				r.summarize()
				return fmt.Errorf("%s: %w", cli.InputName(names[i]), err)
			}
			if err := r.record(ctx, line.Record); err != nil {
				return fmt.Errorf("%s: line %d: %w", cli.InputName(names[i]), line.Number, err)
			}
		}
	}
	return r.end()
}

// foreign imports the files of another system into the project of --project.
func (r *importRun) foreign(
	ctx context.Context,
	a *app,
	cmd *cobra.Command,
	files []io.ReadCloser,
	read func(...io.Reader) (*transfer.Foreign, error),
) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	readers := make([]io.Reader, len(files))
	for i, f := range files {
		readers[i] = f
	}
	found, err := read(readers...)
	if err != nil {
		return err
	}

	for _, client := range found.Clients {
		client.ProjectID = p.ID
		if err := r.record(ctx, client); err != nil {
			return err
		}
	}
	for _, subscriber := range found.Subscribers {
		subscriber.ProjectID = p.ID
		if err := r.record(ctx, subscriber); err != nil {
			return err
		}
	}
	for _, m := range found.Unmapped {
		if err := r.printUnmapped(m); err != nil {
			return err
		}
	}
	return r.end()
}

// record imports a record and prints the outcome.
func (r *importRun) record(ctx context.Context, record any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := r.to.Import(ctx, record)
	if err != nil {
		return err
	}
	if o.Err != nil {
		o.Error = allReasons(o.Err)
	}
	r.counts[o.Status]++
	r.progress.Step()
	return r.print(o)
}

// allReasons returns the messages of all problems in an error.
func allReasons(err error) string {
	var messages []string
	for _, p := range problem.All(err) {
		messages = append(messages, p.Message)
	}
	return cmp.Or(strings.Join(messages, "; "), rejectReason(err))
}

// print prints an outcome.
func (r *importRun) print(o transfer.Outcome) error {
	switch r.Output {
	case "json":
		return r.printJSONLine(o)
	case "id":
		if o.Status != transfer.Created || o.ID == "" {
			return nil
		}
		_, err := fmt.Fprintln(r.Stdout, cli.Sanitize(o.ID))
		return err
	}

	name := strings.TrimSpace(cmp.Or(o.Name, o.ID))
	status := cli.Pad(string(o.Status), len(transfer.Rejected))
	line := fmt.Sprintf("%s  %s %s", status, cli.Sanitize(o.Kind), cli.Sanitize(name))
	if detail := cmp.Or(o.Error, o.Note); detail != "" {
		line += ": " + cli.Sanitize(detail)
	}
	_, err := fmt.Fprintln(r.Stdout, line)
	return err
}

// printUnmapped prints a part of the files that has no counterpart in selvage.
func (r *importRun) printUnmapped(m transfer.Unmapped) error {
	switch r.Output {
	case "json":
		return r.printJSONLine(m)
	case "id":
		return nil
	}
	line := fmt.Sprintf("unmapped  %s (%d, such as %s)", cli.Sanitize(m.What), m.Count, cli.Sanitize(m.Example))
	if m.Why != "" {
		line += ": " + cli.Sanitize(m.Why)
	}
	_, err := fmt.Fprintln(r.Stdout, line)
	return err
}

// summarize prints the totals.
func (r *importRun) summarize() {
	verb := "created"
	if r.to.Dry {
		verb = "to be created"
	}
	fmt.Fprintf(r.Stderr, "%d %s, %d already existed, %d rejected\n",
		r.counts[transfer.Created], verb, r.counts[transfer.Exists], r.counts[transfer.Rejected])
}

// end prints the totals. It returns an error if records were rejected.
func (r *importRun) end() error {
	r.summarize()
	rejects := r.counts[transfer.Rejected]
	switch {
	case rejects == 0:
		return nil
	case r.to.Dry:
		return fmt.Errorf("%s would be rejected", cli.Plural(rejects, "record"))
	case rejects == 1:
		return errors.New("1 record was rejected; everything else was imported")
	}
	return fmt.Errorf("%d records were rejected; everything else was imported", rejects)
}
