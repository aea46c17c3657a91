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

// copiedMediaView describes how commands print a copy of media.
var copiedMediaView = cli.View[backups.CopiedMedia]{
	ID: func(r backups.CopiedMedia) string { return strconv.Itoa(r.Files) },
	JSON: func(r backups.CopiedMedia) any {
		return struct {
			Files   int      `json:"files"`
			Bytes   int64    `json:"bytes"`
			Written int      `json:"written"`
			Damaged []string `json:"damaged"`
		}{r.Files, r.Bytes, r.Written, append([]string{}, r.Damaged...)} // never null
	},
	Facts: []cli.Fact[backups.CopiedMedia]{
		{
			Name: "Files",
			Value: func(r backups.CopiedMedia) string {
				return fmt.Sprintf("%d, %s, equal to their checksums", r.Files, formatBytes(r.Bytes))
			},
		},
		{Name: "Written", Value: func(r backups.CopiedMedia) string { return strconv.Itoa(r.Written) }},
	},
}

const copyMediaHelp = `Copy the media of all recordings to another place, such as from a directory to an
object store, or back. Each copy is read again and compared with the checksum measured at the upload.
Missing and damaged files are listed, and the command then fails.

Servers may run during the copy; recordings that they store later are not in it. Stop them, run the
command again and set media to the new place. Files that are already there are not written again. For
a bucket, set s3.access_key and s3.secret_key.`

func (c *commands) copyMediaCommand() *cobra.Command {
	cmd := cli.Command("copy-media", "Copy the media of recordings, between a directory and an object store",
		c.withMedia(c.copyMedia))
	cmd.Long = copyMediaHelp
	cmd.Flags().String("to", "", "`URL` of the place to copy to, dir:FOLDER or s3://…")
	if err := cmd.MarkFlagRequired("to"); err != nil {
		panic(err)
	}
	return cmd
}

func (c *commands) copyMedia(ctx context.Context, a *app, cmd *cobra.Command, _ []string) (err error) {
	conf := a.Config
	to := cmd.Flags().Lookup("to").Value.String()
	if err := conf.Media.UnmarshalText([]byte(to)); err != nil {
		return cli.Usagef("--to %v", err)
	}
	conf.S3.Serve = config.ServeStream // the cache has files of the other bucket, with the same keys
	target, err := mediastore.Open(conf, a.Ring, "")
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

	if err := cli.Show(c.Env, copiedMediaView, copied); err != nil {
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
