package command

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/recordings"
	"github.com/spf13/cobra"
	"io"
	"os"
	"slices"
	"strings"
)

// rightsCommands are those of what a person may ask of who keeps data about it.
func (c *commands) rightsCommands() []*cobra.Command {
	export := &cobra.Command{
		Use: "export ID [FILE]", Short: "Write everything that is kept about a subscriber, for itself",
		Args: cli.Arguments("ID", "[FILE]"), RunE: c.withMedia(c.exportSubscriber),
		Long: "Writes everything that is kept about a subscriber as one JSON document to FILE, or to stdout. With --recordings FILE is a zip: subscriber.json, and the recordings that are tied to it.",
	}
	export.Flags().Bool("recordings", false, "the recordings' bytes, too: FILE is a zip")
	erase := &cobra.Command{
		Use: "erase ID", Short: "Delete a subscriber and everything that says who it was",
		Args: cli.Arguments("ID"), RunE: c.withMedia(c.eraseSubscriber),
		Long: "Deletes a subscriber with everything that is kept about it: profile, addresses, logins, apps' access, devices, factors, what webhooks were told, and the recordings that are\ntied to it alone. The answer says what stays and why.",
	}
	cli.AddYes(erase)
	return []*cobra.Command{export, erase}
}

func (c *commands) exportSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	media, _ := cmd.Flags().GetBool("recordings")
	if media && len(args) < 2 {
		return cli.Usagef("--recordings makes a zip: name its FILE")
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
	f, err := os.OpenFile(args[1], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already: name another FILE", args[1])
	}
	if err != nil {
		return err
	}
	if media {
		err = zipExport(ctx, a, f, e, document)
	} else {
		_, err = f.Write(document)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(args[1]))
	}
	return nil
}

// zipExport writes an export with the recordings whose bytes there are.
func zipExport(ctx context.Context, a *app, w io.Writer, e fabric.Export, document []byte) error {
	z := zip.NewWriter(w)
	f, err := z.Create("subscriber.json")
	if err == nil {
		_, err = f.Write(document)
	}
	if err != nil {
		return err
	}
	owner := recordings.Owner{ProjectID: e.Subscriber.ProjectID, SubscriberID: e.Subscriber.ID}
	for _, r := range e.Recordings {
		if r.Bytes == 0 {
			continue
		}
		media, err := a.Recordings.Render(ctx, owner, r.Sid, recordings.Wanted{Format: recordings.Original})
		if err != nil {
			return err
		}
		f, err := z.Create("recordings/" + r.Sid + media.Ext)
		if err == nil {
			_, err = io.Copy(f, media.Content)
		}
		if err = errors.Join(err, media.Close()); err != nil {
			return err
		}
	}
	return z.Close()
}

var erasures = cli.View[fabric.Erasure]{
	ID:   func(e fabric.Erasure) string { return e.SubscriberID },
	JSON: func(e fabric.Erasure) any { return e },
	Facts: []cli.Fact[fabric.Erasure]{
		{Name: "Erased", Value: func(e fabric.Erasure) string { return e.SubscriberID }},
		{Name: "Deleted", Value: func(e fabric.Erasure) string { return counted(e.Deleted) }},
		{Name: "Anonymised", Value: func(e fabric.Erasure) string { return counted(e.Anonymised) }},
		{Name: "Stays", Value: func(e fabric.Erasure) string {
			var all []string
			for _, k := range e.Kept {
				all = append(all, k.What+": "+k.Why)
			}
			return strings.Join(all, "\n")
		}},
	},
}

// counted writes what there was any of: "3 sessions, 1 devices".
func counted(of map[string]int64) string {
	var all []string
	for what, n := range of {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, strings.ReplaceAll(what, "_", " ")))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (c *commands) eraseSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	what := "This erases the subscriber " +
		s.Title() + " with everything that is kept about it. It cannot be undone; selvage subscriber export writes it out first."
	if err := c.Confirm(cmd, what, s.Title()); err != nil {
		return err
	}
	e, err := a.Fabric.Subscribers.Erase(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, erasures, e)
}
