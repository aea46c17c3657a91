package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

func (c recordingCommands) downloadCommand() *cobra.Command {
	download := cli.Command("download SID [FILE]", "Write the original bytes of a recording to a file",
		c.withMedia(c.downloadRecording))
	download.Long = `Write the original bytes of a recording to FILE; - is stdout. Without FILE, the file is named after
the Sid and the format: SID.wav, SID.mp3.`
	download.Flags().String("to", "", "`file` to write, instead of FILE")
	return download
}

func (c recordingCommands) downloadRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := findRecording(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("to")
	if len(args) > 1 {
		if name != "" {
			return cli.Usagef("FILE and --to exclude each other")
		}
		name = args[1]
	}

	owner := recordings.Owner{ProjectID: r.ProjectID}
	media, err := a.Recordings.Render(ctx, owner, r.Sid, recordings.Wanted{Format: recordings.Original})
	if err != nil {
		return err
	}
	defer media.Close()

	if name == "-" {
		return copyNoted(ctx, a, r, c.Stdout, media.Content)
	}
	if name == "" {
		name = r.Sid + media.Ext
	}

	f, err := createFile(name, 0o644)
	if err != nil {
		return err
	}
	err = errors.Join(copyNoted(ctx, a, r, f, media.Content), f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), os.Remove(name))
	}
	_, err = fmt.Fprintln(c.Stdout, name)
	return err
}

// copyNoted records the download of r, and then copies its media to w.
func copyNoted(ctx context.Context, a *app, r recordings.Recording, w io.Writer, media io.Reader) error {
	err := noteDownload(ctx, a, r)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, media)
	return err
}

// noteDownload adds a download to the recording's list of accesses. It is called before any byte is
// written.
func noteDownload(ctx context.Context, a *app, r recordings.Recording) error {
	by := audit.From(ctx).Actor
	a.Recordings.NoteAccess(ctx, recordings.Access{
		RecordingID: r.ID,
		Actor:       string(by.Kind) + ":" + by.ID,
		Format:      recordings.Original,
		Bytes:       r.Bytes,
	})
	return a.Recordings.FlushAccesses(ctx)
}

// createFile creates a file that must not exist yet.
func createFile(name string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s already exists: name another FILE", name)
	}
	return f, err
}

func (c recordingCommands) linkCommand() *cobra.Command {
	link := cli.Command("link SID", "Print a temporary link to a recording's media", c.withMedia(c.linkRecording))
	link.Long = `Print a URL with which anyone can fetch the media of one recording, in one format, until it expires.
Links work for projects whose media is signed: see selvage project update --media-auth.`
	link.Flags().Var(&span.Span{Length: time.Hour, Least: time.Second, Most: recordings.LongestLink},
		"expires-in", "`time` until the link expires: 90s, 10m, at most 30d")
	link.Flags().String("format", "",
		"`format` of the media: wav, mp3 or original (default the first of these that exists)")
	return link
}

// linkRecording prints a link to the media of a recording. If the media is public, the link is the
// plain URL.
func (c recordingCommands) linkRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := findRecording(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	format, err := flagFormat(cmd, r)
	if err != nil {
		return err
	}
	auth, err := a.Recordings.MediaAuth(ctx, r.ProjectID)
	if err != nil {
		return err
	}

	url := a.Where.Public + laml.MediaPath(r, format)
	switch auth {
	case recordings.Public:
		fmt.Fprintln(c.Stderr, "The media of this project is public: this is its URL, which does not expire.")
		return c.printLink(url, time.Time{})
	case recordings.Signed:
	default:
		return fmt.Errorf("the media of this project needs credentials, so links would not work: "+
			"`selvage project update %s --media-auth signed` allows them", r.ProjectID)
	}

	signed, err := a.Recordings.Sign(r, format, cli.Span(cmd, "expires-in"), "")
	if err != nil {
		return err
	}
	return c.printLink(laml.WithLink(url, signed), signed.Expires)
}

// flagFormat returns the format that --format names. It returns an error if the recording's media
// does not exist in this format.
func flagFormat(cmd *cobra.Command, r recordings.Recording) (recordings.Format, error) {
	name, _ := cmd.Flags().GetString("format")
	format := recordings.Format(name)
	switch {
	case name == "":
		return r.BestFormat(), nil
	case !slices.Contains(recordings.Formats, format):
		return "", cli.Usagef("--format must be wav, mp3 or original; it is %q", name)
	case r.HasMedia() && !r.Can(format):
		return "", fmt.Errorf("the recording is stored as %s and cannot be converted to %s: omit --format",
			r.Codec, name)
	}
	return format, nil
}

func (c recordingCommands) printLink(url string, expires time.Time) error {
	if c.Output == "json" {
		return c.printJSONLine(struct {
			URL     string   `json:"url"`
			Expires cli.Time `json:"expires_at,omitempty"`
		}{url, cli.UTC(expires)})
	}
	_, err := fmt.Fprintln(c.Stdout, url)
	return err
}
