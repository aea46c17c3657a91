package command

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
	"github.com/spf13/cobra"
	"slices"
	"time"
)

func (c *commands) linkCommand() *cobra.Command {
	link := &cobra.Command{
		Use: "link SID", Short: "Print a link to a recording's media that holds for a while",
		Args: cli.Arguments("SID"), RunE: c.withMedia(c.linkRecording),
		Long: "Prints a URL that lets whoever has it fetch the media of one recording, in one format, until it expires.\n" +
			"Links are for projects whose media is signed: see selvage project update --media-auth.",
	}
	link.Flags().Var(&span.Span{Length: time.Hour, Least: time.Second, Most: recordings.LongestLink},
		"expires-in", "for how `long` it holds: 90s, 10m, 30d at most")
	link.Flags().String("format", "", "`what` it gives: wav, mp3 or original (default the first of them that there is)")
	return link
}

// linkRecording prints a link. Where media is public, that is its URL.
func (c *commands) linkRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.recording(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	format, err := linkFormat(cmd, r)
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
		fmt.Fprintln(c.Stderr, "The media of this project is public: this is its URL, and it does not expire.")
		return c.printLink(url, time.Time{})
	case recordings.Signed:
	default:
		return fmt.Errorf("the media of this project is for who has credentials, and links do not count: `selvage project update %s --media-auth signed` makes them", r.ProjectID)
	}
	signed, err := a.Recordings.Sign(r, format, cli.Span(cmd, "expires-in"))
	if err != nil {
		return err
	}
	return c.printLink(laml.WithLink(url, signed), signed.Expires)
}

// linkFormat returns the format that a link is to, which has to be one that there is,
// or may be once the media has come.
func linkFormat(cmd *cobra.Command, r recordings.Recording) (recordings.Format, error) {
	text, _ := cmd.Flags().GetString("format")
	format := recordings.Format(text)
	switch {
	case text == "":
		return r.BestFormat(), nil
	case !slices.Contains(recordings.Formats, format):
		return "", cli.Usagef("--format needs wav, mp3 or original; it is %q", text)
	case r.HasMedia() && !r.Can(format):
		return "", fmt.Errorf("the recording is kept as it came, as %s: there is no %s of it; leave out --format", r.Codec, text)
	}
	return format, nil
}

func (c *commands) printLink(url string, expires time.Time) error {
	if c.Output == "json" {
		return json.NewEncoder(c.Stdout).Encode(struct {
			URL     string   `json:"url"`
			Expires cli.Time `json:"expires_at,omitempty"`
		}{url, cli.UTC(expires)})
	}
	_, err := fmt.Fprintln(c.Stdout, url)
	return err
}
