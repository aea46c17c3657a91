package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/backups"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/mediastore"
)

// copiedMediaView describes how commands print a copy of media. A copy has no id. With --output id,
// commands print the number of files instead.
var copiedMediaView = cli.View[backups.CopiedMedia]{
	ID:   func(r backups.CopiedMedia) string { return strconv.Itoa(r.Files) },
	JSON: func(r backups.CopiedMedia) any { return newCopiedMediaJSON(r) },
	Facts: []cli.Fact[backups.CopiedMedia]{
		{
			Name: "Files",
			Value: func(r backups.CopiedMedia) string {
				return fmt.Sprintf("%d, %s, equal to their checksums", r.Files, formatBytes(r.Bytes))
			},
		},
		{
			Name:  "Written",
			Value: func(r backups.CopiedMedia) string { return strconv.Itoa(r.Written) },
		},
	},
}

type copiedMediaJSON struct {
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Written int      `json:"written"`
	Damaged []string `json:"damaged"` // never null
}

func newCopiedMediaJSON(r backups.CopiedMedia) copiedMediaJSON {
	return copiedMediaJSON{
		Files:   r.Files,
		Bytes:   r.Bytes,
		Written: r.Written,
		Damaged: append([]string{}, r.Damaged...),
	}
}

const copyMediaHelp = `Copy the media of all recordings to another place, such as from a directory to an
object store, or back. Each copy is read back and compared with the checksum measured at the upload.
Missing and damaged files are listed, and the command then fails.

Servers may run during the copy, but recordings that they store meanwhile may be missing from it. So stop
the servers afterwards, run the command again and set media to the new place. Files that are already
there are not written again. For a bucket, set s3.access_key and s3.secret_key.`

func (c *commands) copyMediaCommand() *cobra.Command {
	cmd := cli.Command("copy-media", "Copy the media of recordings, between a directory and an object store",
		c.withMedia(c.copyMedia))
	cmd.Long = copyMediaHelp
	cmd.Flags().String("to", "", "`URL` of the place to copy to, dir:FOLDER or s3://…")
	return cmd
}

// copyMedia copies the media of all recordings to the place that --to names, and prints a summary. If
// files are missing or damaged, it lists them and returns an error.
func (c *commands) copyMedia(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "to"); err != nil {
		return err
	}
	place, err := cmd.Flags().GetString("to")
	if err != nil {
		return err
	}
	target, err := openCopyTarget(a, place)
	if err != nil {
		return err
	}
	defer target.Close()

	progress := c.NewProgressLine("file")
	copied, err := backups.CopyMedia(ctx, a.Store, a.Media(), target, progress)
	progress.End()
	if errors.Is(err, backups.ErrSamePlace) {
		return cli.Usagef("--to names the place where the media is")
	}
	if err != nil {
		return err
	}

	err = cli.Show(c.Env, copiedMediaView, copied)
	if err != nil {
		return err
	}
	if len(copied.Damaged) == 0 {
		return nil
	}

	for _, key := range copied.Damaged {
		fmt.Fprintf(c.Stderr, "missing or damaged: %s\n", key)
	}
	return fmt.Errorf("%s missing or damaged", cli.Plural(len(copied.Damaged), "file"))
}

// openCopyTarget opens the storage at place, which has the form of the setting media. All other
// settings are those of this server.
func openCopyTarget(a *app, place string) (mediastore.Media, error) {
	conf := a.Config // a copy, so that the app's own configuration does not change
	if err := conf.Media.UnmarshalText([]byte(place)); err != nil {
		return mediastore.Media{}, cli.Usagef("--to %v", err)
	}

	// The copies must be read from the target itself. The local cache would return the files of the
	// source, which have the same keys.
	conf.S3.Serve = config.ServeStream
	return mediastore.Open(conf, a.Ring, "")
}
