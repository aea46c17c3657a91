package command

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// keepingCommands returns the commands that mark recordings, decide how long recordings are kept, or list
// accesses and usage.
func (c recordingCommands) keepingCommands(n noun[recordings.Recording]) []*cobra.Command {
	mark := n.changeCommand("mark SID", "Change the tags of a recording, or put it on hold", markRecording)
	mark.Long = `Add and remove tags of a recording, or put it on hold. A recording on hold cannot be deleted by
anyone, not even by a retention rule or with its project, until --release ends the hold.`
	addMarkFlags(mark)

	bulk := cli.Command("bulk", "Delete or mark all recordings that match the flags", c.withMedia(c.changeRecordings))
	bulk.Long = `Delete or mark all recordings that match the flags, at most 10,000. The command first
shows how many recordings match, and asks whether to continue. Recordings on hold are not deleted.`
	bulk.Flags().Bool("delete", false, "delete the recordings")
	bulk.Flags().Bool("dry-run", false, "only print how many recordings match")
	addMarkFlags(bulk)
	addRecordingFilter(bulk.Flags())
	cli.AddYes(bulk)

	accesses := cli.Command("accesses SID", "List who fetched the media of a recording, the latest first",
		c.with(c.listAccesses))
	usage := cli.Command("usage", "Print what a project recorded on each day", c.with(c.printUsage))
	usage.Flags().Var(new(day), "since", "from this `day` (UTC) on; 29 days before --until by default")
	usage.Flags().Var(new(day), "until", "until the end of this `day` (UTC); today by default")
	addProject(mark, bulk, accesses, usage)
	return []*cobra.Command{mark, bulk, accesses, usage, c.retentionCommand()}
}

// addMarkFlags adds the flags that mark recordings.
func addMarkFlags(cmd *cobra.Command) {
	cmd.Flags().StringSlice("add-tag", nil, "`tags` to add, separated by commas")
	cmd.Flags().StringSlice("remove-tag", nil, "`tags` to remove, separated by commas")
	cmd.Flags().String("hold", "", "put on hold for this `reason`")
	cmd.Flags().Bool("release", false, "end the hold")
}

// flagMarks returns the change that the flags describe, and whether any flag is set.
func flagMarks(cmd *cobra.Command) (in recordings.MarkInput, marked bool, err error) {
	in.Tag, _ = cmd.Flags().GetStringSlice("add-tag")
	in.Untag, _ = cmd.Flags().GetStringSlice("remove-tag")
	reason, _ := cmd.Flags().GetString("hold")
	release, _ := cmd.Flags().GetBool("release")
	switch {
	case release && reason != "":
		return in, false, cli.Usagef("--hold and --release exclude each other")
	case release || reason != "":
		in.Hold = &reason
	}
	return in, in.Hold != nil || len(in.Tag)+len(in.Untag) > 0, nil
}

func markRecording(
	ctx context.Context, a *app, cmd *cobra.Command, r recordings.Recording,
) (recordings.Recording, error) {
	in, marked, err := flagMarks(cmd)
	if err != nil {
		return r, err
	}
	if !marked {
		return r, cli.Usagef("needs --add-tag, --remove-tag, --hold or --release")
	}
	return a.Recordings.Mark(ctx, r.ProjectID, r.Sid, in)
}

// changeRecordings runs the command bulk.
func (c recordingCommands) changeRecordings(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	in, marked, err := flagMarks(cmd)
	if err != nil {
		return err
	}

	b := recordings.Bulk{Mark: in, DryRun: true, Expect: -1}
	dry, _ := cmd.Flags().GetBool("dry-run")
	b.Delete, _ = cmd.Flags().GetBool("delete")
	if b.Delete == marked {
		return cli.Usagef("needs either --delete or a mark, such as --add-tag")
	}

	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}

	b.Filter, err = flagRecordingFilter(cmd)
	if err != nil {
		return err
	}
	b.Filter.ProjectID = p.ID

	found, err := a.Recordings.Change(ctx, b)
	if err != nil {
		return err
	}
	if dry || found.Matched == 0 {
		return c.printBulk(found)
	}

	verb := "changes"
	if b.Delete {
		verb = "deletes"
	}
	what := fmt.Sprintf("This %s %s of %s (%s).",
		verb, cli.Plural(int(found.Matched), "recording"), p.Name, formatBytes(found.Bytes))
	err = c.Ask(cmd, what, "Type the number of recordings to continue: ", strconv.FormatInt(found.Matched, 10))
	if err != nil {
		return err
	}
	b.DryRun = false
	b.Expect = found.Matched
	changed, err := a.Recordings.Change(ctx, b)
	if err != nil {
		return err
	}
	return c.printBulk(changed)
}

// printBulk prints how many recordings matched and changed.
func (c recordingCommands) printBulk(sum recordings.BulkResult) error {
	if c.Output == "json" {
		return c.printJSONLine(struct {
			Matched int64 `json:"matched"`
			Bytes   int64 `json:"bytes"`
			Changed int64 `json:"changed"`
			Refused int64 `json:"refused"`
		}{Matched: sum.Matched, Bytes: sum.Bytes, Changed: sum.Changed, Refused: sum.Refused})
	}
	_, err := fmt.Fprintf(c.Stdout, "matched %d (%s), changed %d, refused %d\n",
		sum.Matched, formatBytes(sum.Bytes), sum.Changed, sum.Refused)
	return err
}

var accessView = cli.View[recordings.Access]{
	ID: func(a recordings.Access) string { return a.ID },
	JSON: func(a recordings.Access) any {
		return struct {
			Actor    string            `json:"actor"`
			Address  string            `json:"address"`
			Format   recordings.Format `json:"format"`
			Requests int64             `json:"requests"`
			Bytes    int64             `json:"bytes"`
			FirstAt  cli.Time          `json:"first_at"`
			LastAt   cli.Time          `json:"last_at"`
		}{
			Actor:    a.Actor,
			Address:  a.Address,
			Format:   a.Format,
			Requests: a.Requests,
			Bytes:    a.Bytes,
			FirstAt:  cli.UTC(a.First),
			LastAt:   cli.UTC(a.Last),
		}
	},
	Facts: []cli.Fact[recordings.Access]{
		{Name: "Last", Value: func(a recordings.Access) string { return cli.FormatTime(a.Last) }},
		{Name: "Actor", Value: func(a recordings.Access) string { return a.Actor }},
		{Name: "Address", Value: func(a recordings.Access) string { return a.Address }},
		{Name: "Format", Value: func(a recordings.Access) string { return string(a.Format) }},
		{Name: "Requests", Value: func(a recordings.Access) string { return strconv.FormatInt(a.Requests, 10) }},
		{Name: "Size", Value: func(a recordings.Access) string { return formatBytes(a.Bytes) }},
	},
}

func (c recordingCommands) listAccesses(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := searchProjects(ctx, a, cmd, func(projectID string) (recordings.Recording, error) {
		return a.Store.FindRecording(ctx, recordings.Owner{ProjectID: projectID}, args[0])
	})
	if err != nil {
		return err
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[recordings.Access], error) {
		return a.Store.ListAccesses(ctx, r.ID, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, accessView, all)
}

var usageView = cli.View[recordings.Usage]{
	ID: func(u recordings.Usage) string { return u.Day.Format(time.DateOnly) },
	JSON: func(u recordings.Usage) any {
		return struct {
			Day        string  `json:"day"`
			Recordings int64   `json:"recordings"`
			Seconds    int64   `json:"seconds"`
			Bytes      int64   `json:"bytes"`
			Stored     int64   `json:"stored_bytes"`
			Price      float64 `json:"price"`
		}{
			Day:        u.Day.Format(time.DateOnly),
			Recordings: u.Recordings,
			Seconds:    u.Seconds,
			Bytes:      u.Bytes,
			Stored:     u.Stored,
			Price:      float64(u.Price) / 1e6,
		}
	},
	Facts: []cli.Fact[recordings.Usage]{
		{Name: "Day", Value: func(u recordings.Usage) string { return u.Day.Format(time.DateOnly) }},
		{Name: "Recordings", Value: func(u recordings.Usage) string { return strconv.FormatInt(u.Recordings, 10) }},
		{
			Name: "Minutes",
			Value: func(u recordings.Usage) string {
				return strconv.FormatFloat(float64(u.Seconds)/60, 'f', 1, 64)
			},
		},
		{Name: "Uploaded", Value: func(u recordings.Usage) string { return formatBytes(u.Bytes) }},
		{Name: "Stored", Value: func(u recordings.Usage) string { return formatBytes(u.Stored) }},
		{
			Name: "Price",
			Value: func(u recordings.Usage) string {
				return strconv.FormatFloat(float64(u.Price)/1e6, 'f', 4, 64) + " USD"
			},
		},
	},
}

// formatQuota formats the quota of a project's recordings for people.
func formatQuota(p fabric.Project) string {
	if p.RecordingQuota == 0 {
		return "no limit"
	}
	return formatBytes(p.RecordingQuota)
}

func (c recordingCommands) printUsage(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}

	until := time.Time(*cmd.Flags().Lookup("until").Value.(*day))
	if until.IsZero() {
		until = time.Now().UTC().Truncate(24 * time.Hour)
	}

	since := time.Time(*cmd.Flags().Lookup("since").Value.(*day))
	if since.IsZero() {
		since = until.AddDate(0, 0, -29)
	}

	all, err := a.Store.ListUsage(ctx, p.ID, since, until.AddDate(0, 0, 1))
	if err != nil {
		return err
	}
	if c.Output == "table" {
		used, err := a.Store.StoredBytes(ctx, p.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Stderr, "Stored now: %s; quota: %s\n", formatBytes(used), formatQuota(p))
	}
	return cli.List(c.Env, usageView, all)
}
