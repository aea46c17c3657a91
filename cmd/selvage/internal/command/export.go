package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/transfer"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/durable"
	"github.com/selvage/selvage/internal/page"
)

func (c *commands) exportCommand() *cobra.Command {
	cmd := cli.Command("export FILE", "Write projects with their people, apps, resources and settings to a file",
		c.with(c.export))
	cmd.Long = `Write all projects, or the one that --project names, to a file of JSON lines. selvage import
reads it into either kind of database. A file named - is stdout.

The file contains the hashes of passwords, API keys and client secrets, so keep it private. It contains no
logins, tokens, second factors, devices, recordings, calls, messages or audit trail: to move a whole
installation, use selvage backup or selvage migrate copy. The command prints what else it leaves out, such
as logos and the passwords of SIP gateways.`
	cmd.Flags().String("project", "", "export only this project, an `id`")
	return cmd
}

// export writes projects to a file or to stdout, and prints what it has written and what it has left out.
func (c *commands) export(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	projects, err := exportedProjects(ctx, a, cmd)
	if err != nil {
		return err
	}
	progress := c.NewProgress("record")
	conf := transfer.ExportConfig{
		Fabric:   a.Fabric,
		IDP:      a.IDP,
		Version:  c.build.Version,
		Now:      time.Now(),
		Projects: projects,
		Step:     progress.Step,
		Rules:    a.Store.ListRules,
	}

	var sum transfer.Summary
	write := func(w io.Writer) (err error) {
		sum, err = transfer.Export(ctx, w, conf)
		return err
	}
	if args[0] == "-" {
		err = write(c.Stdout)
	} else {
		err = writePrivate(args[0], write)
	}
	progress.End()
	if err != nil {
		return err
	}

	for _, kind := range transfer.Kinds() {
		fmt.Fprintf(c.Stderr, "%-14s %d\n", kind, sum.Counts[kind])
	}
	for _, what := range slices.Sorted(maps.Keys(sum.Left)) {
		fmt.Fprintf(c.Stderr, "not exported: %s (%d)\n", what, sum.Left[what])
	}
	return nil
}

// exportedProjects returns the project that --project names, or all projects.
func exportedProjects(ctx context.Context, a *app, cmd *cobra.Command) ([]fabric.Project, error) {
	if !cmd.Flags().Changed("project") {
		return page.Every(ctx, a.Fabric.Projects.List)
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return []fabric.Project{p}, nil
}

// writePrivate creates a file that only its owner can read. The file does not appear until it is
// complete. If the file already exists, writePrivate returns an error.
func writePrivate(name string, write func(io.Writer) error) error {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s exists; name another file, or remove it", name)
	}
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, ".selvage-export-*") // mode 0600
	if err != nil {
		return fmt.Errorf("creating export: %w", err)
	}

	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), name) // unlike Rename, it does not replace a file
	}
	if err := errors.Join(err, os.Remove(f.Name())); err != nil {
		return fmt.Errorf("creating export: %w", err)
	}
	err = durable.SyncDir(dir)
	if errors.Is(err, fs.ErrPermission) { // files can be created in the directory, but it cannot be read
		return nil
	}
	return err
}
