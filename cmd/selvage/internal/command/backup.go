package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/backups"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/durable"
)

// backupCommands implements the commands for backups.
type backupCommands struct{ *commands }

const backupHelp = `Back up the rows of the database and the media of recordings, encrypted with age, while servers run.

A directory holds many backups, which share their media: each further backup writes only new recordings.
A file holds one backup with all its media. A name is that of a directory if it ends with / or if the
directory exists.

The master key is not part of a backup. Keep a copy of it elsewhere: a restore needs both.`

const restoreHelp = `Restore a backup into a data directory that has nothing but the master key, and into an empty
database if that is in PostgreSQL. Stop the servers of the old installation first. Before the command
writes anything, it checks the whole archive, and that it was made with the master key.

All logins, grants, tokens and mailed links end, because the backup does not know which of them have
been used or revoked since. Other changes since the backup are undone, too: check passwords and API
keys.`

func (c backupCommands) command() *cobra.Command {
	create := cli.Command("create [DIR|FILE]", "Back up the rows and the media", c.withMedia(c.create))
	create.Long = backupHelp
	create.Flags().StringSlice("recipient", nil,
		"age `recipient` to encrypt the backup to, such as age1… (default: backup.recipients)")
	create.Flags().Int("keep", 0,
		"`number` of backups to keep in a directory; older ones are removed (default: backup.keep)")
	list := cli.Command("list [DIR]", "List the backups in a directory, newest first", c.list)
	verify := cli.Command("verify [DIR|FILE]",
		"Read a backup, or the newest in a directory, and compare everything with its checksums", c.verify)
	restore := cli.Command("restore DIR|FILE",
		"Restore a backup, or the newest in a directory, into an empty data directory", c.restore)
	restore.Long = restoreHelp
	restore.Flags().Bool("accept-broken-audit", false, "restore the backup even if its audit trail was tampered with")
	for _, cmd := range []*cobra.Command{verify, restore} {
		cmd.Flags().String("identity", "", "`file` with the age identity, such as AGE-SECRET-KEY-1…")
	}
	key := cli.Command("key FILE", "Create an age identity in a new file, and print its recipient", c.newKey)
	return cli.Noun("backup", "Backups of the rows and the media", create, list, verify, restore, key)
}

// backupView prints the contents of a backup.
var backupView = cli.View[backup.Report]{
	ID: func(r backup.Report) string { return r.Name },
	JSON: func(r backup.Report) any {
		return struct {
			backup.Summary
			Tables []backup.Sum `json:"tables"`
			Media  backup.Media `json:"media"`
		}{Summary: r.Summary, Tables: r.Manifest.Tables, Media: r.Manifest.Media}
	},
	Facts: []cli.Fact[backup.Report]{
		{Name: "Backup", Value: func(r backup.Report) string { return r.Name }},
		{Name: "Created", Value: func(r backup.Report) string { return cli.FormatTime(r.Created) }},
		{Name: "Rows", Value: func(r backup.Report) string {
			return fmt.Sprintf("%d in %d tables", r.Rows, len(r.Manifest.Tables))
		}},
		{Name: "Recordings", Value: func(r backup.Report) string {
			return fmt.Sprintf("%d, %s", r.Recordings, formatBytes(r.MediaBytes))
		}},
		{Name: "New media", Value: func(r backup.Report) string {
			if r.Bytes == 0 {
				return ""
			}
			return fmt.Sprintf("%s, %s", cli.Plural(int(r.Added), "file"), formatBytes(r.AddedBytes))
		}},
		{Name: "Archive", Value: func(r backup.Report) string {
			if r.Bytes == 0 {
				return ""
			}
			return formatBytes(r.Bytes) + ", SHA-256 " + r.SHA256
		}},
	},
}

// create writes a backup, and prints it.
func (c backupCommands) create(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	target := a.Config.BackupDir()
	if len(args) > 0 {
		target = args[0]
	}
	if target == "" {
		return cli.Usagef("name a directory or a file for the backup, or set backup.directory")
	}

	recipients, err := c.recipients(cmd, a.Config)
	if err != nil {
		return err
	}

	keep := int(a.Config.Backup.Keep)
	if cmd.Flags().Changed("keep") {
		keep, _ = cmd.Flags().GetInt("keep")
	}

	progress := c.NewProgressLine("file")
	b := backups.Backup{
		Rows:     a.Store,
		Media:    a.Media(),
		Program:  c.build.version(),
		Key:      a.BackupKey(),
		To:       recipients,
		Keep:     keep,
		Progress: func(string) { progress.Step() },
	}
	r, err := b.Create(ctx, target)
	progress.End()
	var mismatch *backup.Mismatch
	if err != nil && !errors.As(err, &mismatch) {
		return err
	}

	// After a mismatch there is a backup, too.
	if printErr := cli.Show(c.Env, backupView, r.Report); printErr != nil {
		return printErr
	}
	if c.Output == "table" {
		fmt.Fprintf(c.Stderr, "The master key is not in the backup: keep a copy of %s elsewhere.\n",
			masterKeyOf(a.Config))
	}
	if err != nil {
		return fmt.Errorf("the backup has everything but this: %w", err)
	}
	return nil
}

// masterKeyOf describes where the master key is.
func masterKeyOf(conf config.Config) string {
	if conf.MasterKey != "" {
		return "master_key"
	}
	return conf.MasterFile()
}

// recipients returns the recipients that the flag or the configuration names.
func (c backupCommands) recipients(cmd *cobra.Command, conf config.Config) ([]age.Recipient, error) {
	texts, _ := cmd.Flags().GetStringSlice("recipient")
	if len(texts) == 0 {
		texts = conf.Backup.Recipients
	}
	if len(texts) == 0 {
		return nil, cli.Usagef("a backup needs a recipient: run `selvage backup key FILE`, keep the file elsewhere, " +
			"and set --recipient or backup.recipients to what it prints")
	}
	recipients, err := backup.ParseRecipients(texts)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return recipients, nil
}

// summaryView prints the summary of a backup, as lists show it.
var summaryView = cli.View[backup.Summary]{
	ID:   func(s backup.Summary) string { return s.Name },
	JSON: func(s backup.Summary) any { return s },
	Facts: []cli.Fact[backup.Summary]{
		{Name: "Backup", Value: func(s backup.Summary) string { return s.Name }},
		{Name: "Created", Value: func(s backup.Summary) string { return cli.FormatTime(s.Created) }},
		{Name: "Rows", Value: func(s backup.Summary) string { return strconv.FormatInt(s.Rows, 10) }},
		{Name: "Recordings", Value: func(s backup.Summary) string { return strconv.FormatInt(s.Recordings, 10) }},
		{Name: "Media", Value: func(s backup.Summary) string { return formatBytes(s.MediaBytes) }},
		{Name: "Archive", Value: func(s backup.Summary) string { return formatBytes(s.Bytes) }},
	},
}

// target returns the directory or file that an argument or the configuration names.
func (c backupCommands) target(cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return "", err
	}
	if target := conf.BackupDir(); target != "" {
		return target, nil
	}
	return "", cli.Usagef("name a directory of backups, or set backup.directory")
}

// list prints the backups in a directory.
func (c backupCommands) list(cmd *cobra.Command, args []string) error {
	target, err := c.target(cmd, args)
	if err != nil {
		return err
	}

	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("listing backups: %w", err)
	}
	if !info.IsDir() {
		return cli.Usagef("backup list needs a directory, but %s is a file; `selvage backup verify` checks it", target)
	}
	files, err := backup.OpenFolder(target)
	if err != nil {
		return err
	}

	all, err := backup.OpenDir(files).List()
	if err != nil {
		return err
	}
	return cli.List(c.Env, summaryView, all)
}

// openArchive finds the backup that a command names, and reads the identity.
func (c backupCommands) openArchive(
	cmd *cobra.Command, target string,
) (a backup.Archive, ids []age.Identity, err error) {
	name, _ := cmd.Flags().GetString("identity")
	file, err := os.Open(name)
	if err != nil {
		return a, nil, fmt.Errorf("reading the identity: %w", err)
	}
	defer file.Close()
	ids, err = backup.ParseIdentities(file)
	if err != nil {
		return a, nil, fmt.Errorf("%s: %w", name, err)
	}
	a, err = backup.Find(target)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil, cli.NotFoundf("%v", err)
	}
	if err != nil {
		return a, nil, err
	}
	return a, ids, nil
}

// verify reads a whole backup, and checks its contents and its origin.
func (c backupCommands) verify(cmd *cobra.Command, args []string) error {
	if err := cli.Need(cmd, "identity"); err != nil {
		return err
	}
	target, err := c.target(cmd, args)
	if err != nil {
		return err
	}

	a, ids, err := c.openArchive(cmd, target)
	if err != nil {
		return err
	}

	progress := c.NewProgressLine("file")
	h, m, err := a.Verify(cmd.Context(), ids, func(string) { progress.Step() })
	progress.End()
	if err != nil {
		return notVerified(a.Name, err)
	}

	if err := c.checkOrigin(cmd, h, m); err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return cli.Show(c.Env, backupView, reportOf(a, h, m))
}

// notVerified returns the error for a backup that could not be verified because of err. Not every such
// backup is damaged.
func notVerified(name string, err error) error {
	for _, other := range []error{backup.ErrOtherRecipients, context.Canceled, fs.ErrPermission} {
		if errors.Is(err, other) {
			return fmt.Errorf("verifying %s: %w", name, err)
		}
	}
	return fmt.Errorf("%s is damaged: %w", name, err)
}

// checkOrigin returns an error if the backup was not made with the master key. If there is no
// master key, it prints that this was not checked.
func (c backupCommands) checkOrigin(cmd *cobra.Command, h backup.Header, m backup.Manifest) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	master, err := backups.MasterKey(conf)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		fmt.Fprintf(c.Stderr, "Without the master key, verify cannot check who made the backup: "+
			"it found no readable %s.\n", conf.MasterFile())
		return nil
	}
	if err != nil {
		return err
	}
	return backups.CheckOrigin(h, m, master)
}

// reportOf describes a backup that was read.
func reportOf(a backup.Archive, h backup.Header, m backup.Manifest) backup.Report {
	return backup.Report{
		Manifest: m,
		Summary: backup.Summary{
			Name:       a.Name,
			Created:    h.Created,
			Program:    h.Program,
			Schema:     h.Schema,
			Rows:       m.Rows(),
			Recordings: m.Media.Recordings,
			MediaBytes: m.Media.Bytes,
		},
	}
}

// restore restores a backup, and prints what people must do afterwards.
func (c backupCommands) restore(cmd *cobra.Command, args []string) error {
	if err := cli.Need(cmd, "identity"); err != nil {
		return err
	}
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	a, ids, err := c.openArchive(cmd, args[0])
	if err != nil {
		return err
	}

	progress := c.NewProgressLine("file")
	accept, _ := cmd.Flags().GetBool("accept-broken-audit")
	r := backups.Restore{
		Config:            conf,
		Archive:           a,
		Identities:        ids,
		AcceptBrokenAudit: accept,
		Progress:          func(string) { progress.Step() },
	}
	h, m, err := r.Run(cmd.Context())
	progress.End()
	if err != nil {
		return fmt.Errorf("restoring %s: %w", a.Name, err)
	}

	if err := cli.Show(c.Env, backupView, reportOf(a, h, m)); err != nil {
		return err
	}
	if c.Output == "table" {
		fmt.Fprintf(c.Stderr, "Everybody must sign in again: all logins, grants and tokens from before the restore "+
			"have ended.\nChanges since %s are undone, such as new passwords and revoked API keys.\n",
			cli.FormatTime(h.Created))
	}
	return nil
}

// newKey writes a new identity to a file that does not exist yet, and prints its recipient.
func (c backupCommands) newKey(_ *cobra.Command, args []string) error {
	identity, recipient, err := backup.NewIdentity()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating an identity: %w", err)
	}
	_, err = fmt.Fprintf(file, "# public key: %s\n%s\n", recipient, identity)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return fmt.Errorf("creating an identity: %w", err)
	}
	// The file is complete and cannot be created again, so print its recipient in any case.
	_, err = fmt.Fprintln(c.Stdout, recipient)
	if err := errors.Join(err, durable.SyncDir(filepath.Dir(args[0]))); err != nil {
		return fmt.Errorf("creating an identity: %w", err)
	}
	return nil
}
