package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/recordings"
)

var ruleView = cli.View[recordings.Rule]{
	ID: func(u recordings.Rule) string { return u.ID },
	JSON: func(u recordings.Rule) any {
		return struct {
			ID           string   `json:"id"`
			ProjectID    string   `json:"project_id"`
			Tag          string   `json:"tag,omitempty"`
			SubscriberID string   `json:"subscriber_id,omitempty"`
			Days         int      `json:"days"`
			CreatedAt    cli.Time `json:"created_at"`
		}{
			ID:           u.ID,
			ProjectID:    u.ProjectID,
			Tag:          u.Tag,
			SubscriberID: u.SubscriberID,
			Days:         u.Days,
			CreatedAt:    cli.UTC(u.Created),
		}
	},
	Facts: []cli.Fact[recordings.Rule]{
		{Name: "ID", Value: func(u recordings.Rule) string { return u.ID }},
		{Name: "Project", Detail: true, Value: func(u recordings.Rule) string { return u.ProjectID }},
		{Name: "Tag", Value: func(u recordings.Rule) string { return u.Tag }},
		{Name: "Subscriber", Value: func(u recordings.Rule) string { return u.SubscriberID }},
		{
			Name: "Keep",
			Value: func(u recordings.Rule) string {
				if u.Days == 0 {
					return "forever"
				}
				return cli.Plural(u.Days, "day")
			},
		},
		{Name: "Created", Minor: true, Value: func(u recordings.Rule) string { return cli.FormatTime(u.Created) }},
	},
}

// retentionCommand returns the commands for retention rules.
func (c recordingCommands) retentionCommand() *cobra.Command {
	n := noun[recordings.Rule]{commands: c.commands, view: ruleView, media: true, list: listRules}
	add := n.projectCommand("add", "Add a rule", []string{"days"}, addRule)
	add.Long = `Add a rule that says how long recordings are kept, counted from the day on which they were stored.
Of several rules that apply to a recording, the most specific one counts: a rule with a tag before one
without, then a rule with a subscriber before one without. Recordings to which no rule applies are kept
forever. Expired recordings are deleted once an hour.`
	preview := cli.Command("preview", "Print how many recordings the rules would delete now",
		c.withMedia(c.previewRules))
	preview.Long = `Print how many recordings the rules of a project would delete now. With --days, the rule that the
flags describe counts, too.`
	for _, cmd := range []*cobra.Command{add, preview} {
		cmd.Flags().Int("days", 0, "keep recordings for this `number` of days; 0 means forever")
		cmd.Flags().String("tag", "", "the rule applies to recordings with this `tag`")
		cmd.Flags().String("subscriber", "", "the rule applies to recordings of the subscriber with this `id`")
	}

	ls := n.listCommand("list", "List the rules of a project")
	remove := cli.Command("remove ID", "Remove a rule", c.withMedia(
		func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
			return tryProjects(ctx, a, cmd, func(projectID string) error {
				return a.Recordings.Retention().Delete(ctx, projectID, args[0])
			})
		}))
	addProject(add, ls, preview, remove)
	return cli.Noun("retention", "Rules that say how long recordings are kept", add, ls, preview, remove)
}

// flagRule returns the rule that the flags describe.
func flagRule(cmd *cobra.Command, projectID string) (u recordings.Rule) {
	u.ProjectID = projectID
	u.Days, _ = cmd.Flags().GetInt("days")
	u.Tag, _ = cmd.Flags().GetString("tag")
	u.SubscriberID, _ = cmd.Flags().GetString("subscriber")
	return u
}

func addRule(ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project) (recordings.Rule, error) {
	return a.Recordings.Retention().Add(ctx, flagRule(cmd, p.ID))
}

func listRules(ctx context.Context, a *app, cmd *cobra.Command) ([]recordings.Rule, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return a.Recordings.Retention().List(ctx, p.ID)
}

func (c recordingCommands) previewRules(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}

	var more *recordings.Rule
	if cmd.Flags().Changed("days") {
		u := flagRule(cmd, p.ID)
		more = &u
	}

	sum, err := a.Recordings.Retention().Preview(ctx, p.ID, more)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return c.printJSONLine(struct {
			Recordings int64 `json:"recordings"`
			Bytes      int64 `json:"bytes"`
		}{sum.Recordings, sum.Bytes})
	}

	_, err = fmt.Fprintf(c.Stdout, "would delete %s (%s)\n",
		cli.Plural(int(sum.Recordings), "recording"), formatBytes(sum.Bytes))
	return err
}
