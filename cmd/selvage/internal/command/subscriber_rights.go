package command

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// rightsCommands returns the commands for answering people's requests about their personal data.
func (c subscriberCommands) rightsCommands() []*cobra.Command {
	export := cli.Command("export ID [FILE]", "Export all data about a subscriber",
		c.withMedia(c.exportSubscriber))
	export.Long = `Write all data about a subscriber as one JSON document to FILE, or to stdout. With --recordings,
FILE is a ZIP archive of subscriber.json and the subscriber's recordings.`
	export.Flags().Bool("recordings", false, "include the recordings' audio; FILE is then a ZIP archive")
	erase := cli.Command("erase ID", "Delete a subscriber and all their personal data", c.withMedia(c.eraseSubscriber))
	erase.Long = `Delete a subscriber and all data about that person: profile, addresses, logins, consents, devices,
factors, deliveries to webhooks, and recordings that belong to nobody else. The output lists what remains
and why. If the subscriber has already been deleted, use its id to erase the data that remains.`
	cli.AddYes(erase)
	return []*cobra.Command{export, erase}
}

// exportSubscriber writes a person's data to a file or to stdout.
func (c subscriberCommands) exportSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := findSubscriber(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}

	media, _ := cmd.Flags().GetBool("recordings")
	if media && len(args) < 2 {
		return cli.Usagef("--recordings writes a ZIP archive; FILE is required")
	}

	e, err := a.Fabric.ExportSubscriber(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}

	document, err := e.JSON()
	if err != nil {
		return err
	}
	if len(args) < 2 {
		_, err = fmt.Fprintf(c.Stdout, "%s\n", document)
		return err
	}

	f, err := createFile(args[1], 0o600)
	if err != nil {
		return err
	}
	if media {
		err = zipExport(ctx, a, f, e, document)
	} else {
		_, err = f.Write(document)
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(args[1]))
	}
	return nil
}

// zipExport writes a ZIP archive with the export and with the recordings that have media.
func zipExport(ctx context.Context, a *app, w io.Writer, e fabric.Export, document []byte) error {
	z := zip.NewWriter(w)
	f, err := z.Create("subscriber.json")
	if err != nil {
		return err
	}

	if _, err := f.Write(document); err != nil {
		return err
	}
	owner := recordings.Owner{ProjectID: e.Subscriber.ProjectID, SubscriberID: e.Subscriber.ID}
	for _, r := range e.Recordings {
		if r.Bytes == 0 {
			continue
		}
		if err := zipRecording(ctx, a, z, owner, r.Sid); err != nil {
			return err
		}
	}
	return z.Close()
}

// zipRecording adds the media of a recording to an archive.
func zipRecording(ctx context.Context, a *app, z *zip.Writer, owner recordings.Owner, sid string) (err error) {
	media, err := a.Recordings.Render(ctx, owner, sid, recordings.Wanted{Format: recordings.Original})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, media.Close()) }()
	f, err := z.Create("recordings/" + sid + media.Ext)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, media.Content)
	return err
}

var erasureView = cli.View[fabric.Erasure]{
	ID:   func(e fabric.Erasure) string { return e.SubscriberID },
	JSON: func(e fabric.Erasure) any { return e },
	Facts: []cli.Fact[fabric.Erasure]{
		{Name: "Erased", Value: func(e fabric.Erasure) string { return e.SubscriberID }},
		{Name: "Deleted", Value: func(e fabric.Erasure) string { return formatCounts(e.Deleted) }},
		{Name: "Anonymized", Value: func(e fabric.Erasure) string { return formatCounts(e.Anonymized) }},
		{
			Name: "Kept",
			Value: func(e fabric.Erasure) string {
				var all []string
				for _, k := range e.Kept {
					all = append(all, k.What+": "+k.Why)
				}
				return strings.Join(all, "\n")
			},
		},
	},
}

// formatCounts formats the counts above zero: "2 devices, 3 sessions".
func formatCounts(counts map[string]int64) string {
	var texts []string
	for what, n := range counts {
		if n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(what, "_", " ")))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// findErasable is like findSubscriber. For an unknown id, it returns a subscriber with only that
// id, because a subscriber that was already deleted may have left data.
func findErasable(ctx context.Context, a *app, cmd *cobra.Command, id string) (fabric.Subscriber, error) {
	s, err := findSubscriber(ctx, a, cmd, id)
	if !errors.Is(err, problem.NotFound) || uuid.Validate(id) != nil {
		return s, err
	}
	p, projectErr := a.project(ctx, cmd)
	if projectErr != nil {
		return s, err
	}
	return fabric.Subscriber{ID: id, ProjectID: p.ID}, nil
}

// eraseSubscriber asks for confirmation, deletes a person's data, and prints what remains.
func (c subscriberCommands) eraseSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := findErasable(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	what := "This erases the subscriber " + s.Title() + " and all data about that person. " +
		"It cannot be undone. To save the data first, run `selvage subscriber export`."
	if err := c.Confirm(cmd, what, s.Title()); err != nil {
		return err
	}
	e, err := a.Fabric.Subscribers.Erase(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, erasureView, e)
}
