package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

func (c recordingCommands) verifyCommand() *cobra.Command {
	verify := cli.Command("verify", "Compare the media of recordings with their checksums",
		c.withMedia(c.verifyRecordings))
	verify.Long = `Read the media of all recordings of a project, or of those that the flags select, and compare it
with the size and the SHA-256 measured at the upload. Each damaged recording is printed. The command
fails if any recording is damaged. Servers may run meanwhile.`
	addRecordingFilter(verify.Flags())
	return verify
}

// A verification counts the recordings that were read.
type verification struct {
	recordings int
	bytes      int64
	damaged    int
}

func (c recordingCommands) verifyRecordings(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	filter, err := flagRecordingFilter(cmd)
	if err != nil {
		return err
	}
	filter.ProjectID = p.ID

	// The recordings are listed twice, because a list of all of them may need too much memory.
	var all, read verification
	err = eachStored(ctx, a, filter, func(r recordings.Recording) error {
		all.recordings++
		all.bytes += r.Bytes
		return nil
	})
	if err != nil {
		return err
	}

	progress := c.NewProgress("recording")
	progress.ExpectThings(all.recordings)
	progress.Expect(all.bytes)
	err = eachStored(ctx, a, filter, func(r recordings.Recording) error {
		return c.verifyRecording(ctx, a, r, progress, &read)
	})
	progress.End()
	if err != nil {
		return err
	}
	return c.reportVerification(read)
}

// verifyRecording verifies one recording, and prints its damage.
func (c recordingCommands) verifyRecording(
	ctx context.Context, a *app, r recordings.Recording, progress *cli.Progress, read *verification,
) error {
	damage, err := a.Recordings.VerifyMedia(ctx, r, progress.Reader)
	if err != nil {
		return err
	}
	progress.Step()
	read.recordings++
	read.bytes += r.Bytes
	if damage == "" {
		return nil
	}

	read.damaged++
	switch c.Output {
	case "json":
		return c.printJSONLine(struct {
			Sid    string `json:"sid"`
			SHA256 string `json:"sha256"`
			Damage string `json:"damage"`
		}{Sid: r.Sid, SHA256: r.SHA256, Damage: damage})
	case "id":
		_, err = fmt.Fprintln(c.Stdout, r.Sid)
	default:
		_, err = fmt.Fprintf(c.Stdout, "damaged  %s  %s\n", r.Sid, cli.Sanitize(damage))
	}
	return err
}

// reportVerification prints the totals on stderr, or returns an error if any recording is damaged.
func (c recordingCommands) reportVerification(read verification) error {
	if read.damaged == 0 {
		fmt.Fprintf(c.Stderr, "%s, %s: all match their checksums\n",
			cli.Plural(read.recordings, "recording"), formatBytes(read.bytes))
		return nil
	}
	if read.recordings == 1 {
		return errors.New("the recording is damaged")
	}
	return fmt.Errorf("%d of %d recordings are damaged", read.damaged, read.recordings)
}

// eachStored calls do for each recording that has media and matches the filter.
func eachStored(
	ctx context.Context, a *app, filter recordings.Filter, do func(recordings.Recording) error,
) error {
	q := page.Query{Size: page.MaxSize}
	for {
		p, err := a.Recordings.List(ctx, filter, q)
		if err != nil {
			return err
		}

		for _, r := range p.Items {
			if !r.HasMedia() {
				continue
			}
			if err := do(r); err != nil {
				return err
			}
		}

		if p.Next == "" {
			return ctx.Err()
		}
		q.From = p.Next
	}
}
