package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/recordings"
)

var ruleView = cli.View[recordings.Rule]{
	ID: func(r recordings.Rule) string { return r.ID },
	JSON: func(r recordings.Rule) any {
		return struct {
			ID           string   `json:"id"`
			ProjectID    string   `json:"project_id"`
			Tag          string   `json:"tag,omitempty"`
			SubscriberID string   `json:"subscriber_id,omitempty"`
			Days         int      `json:"days"`
			CreatedAt    cli.Time `json:"created_at"`
		}{
			ID:           r.ID,
			ProjectID:    r.ProjectID,
			Tag:          r.Tag,
			SubscriberID: r.SubscriberID,
			Days:         r.Days,
			CreatedAt:    cli.UTC(r.Created),
		}
	},
	Facts: []cli.Fact[recordings.Rule]{
		{Name: "ID", Value: func(r recordings.Rule) string { return r.ID }},
		{Name: "Project", Detail: true, Value: func(r recordings.Rule) string { return r.ProjectID }},
		{Name: "Tag", Value: func(r recordings.Rule) string { return r.Tag }},
		{Name: "Subscriber", Value: func(r recordings.Rule) string { return r.SubscriberID }},
		{
			Name: "Keep",
			Value: func(r recordings.Rule) string {
				if r.Days == 0 {
					return "forever"
				}
				return cli.Plural(r.Days, "day")
			},
		},
		{Name: "Created", Minor: true, Value: func(r recordings.Rule) string { return cli.FormatTime(r.Created) }},
	},
}

const (
	addRuleHelp = `Add a rule that says how long recordings are kept, counted from the day on which they were stored.
Of several rules that apply to a recording, the most specific one counts: a rule with a tag before one
without, then a rule with a subscriber before one without. Recordings to which no rule applies are kept
forever. Expired recordings are deleted once an hour.`

	previewHelp = `Print how many recordings the rules of a project would delete now. With --days, the rule that the
flags describe counts, too.`
)

// retentionCommand returns the commands for retention rules.
func (c recordingCommands) retentionCommand() *cobra.Command {
	n := noun[recordings.Rule]{
		commands: c.commands,
		view:     ruleView,
		media:    true, // opens the recordings; otherwise a.Recordings is nil
		list:     listRules,
	}

	add := n.projectCommand("add", "Add a rule", []string{"days"}, addRule)
	add.Long = addRuleHelp
	addRuleFlags(add)

	preview := cli.Command("preview", "Print how many recordings the rules would delete now",
		c.withMedia(c.previewRules))
	preview.Long = previewHelp
	addRuleFlags(preview)

	ls := n.listCommand("list", "List the rules of a project")
	remove := cli.Command("remove ID", "Remove a rule", c.withMedia(removeRule))
	addProject(add, ls, preview, remove)
	return cli.Noun("retention", "Rules that say how long recordings are kept", add, ls, preview, remove)
}

// addRuleFlags adds the flags that describe a rule; see ruleOf.
func addRuleFlags(cmd *cobra.Command) {
	cmd.Flags().Int("days", 0, "keep recordings for this `number` of days; 0 means forever")
	cmd.Flags().String("tag", "", "the rule applies to recordings with this `tag`")
	cmd.Flags().String("subscriber", "", "the rule applies to recordings of the subscriber with this `id`")
}

// ruleOf returns the rule that the flags describe.
func ruleOf(cmd *cobra.Command, projectID string) (recordings.Rule, error) {
	days, err1 := cmd.Flags().GetInt("days")
	tag, err2 := cmd.Flags().GetString("tag")
	subscriberID, err3 := cmd.Flags().GetString("subscriber")
	rule := recordings.Rule{
		ProjectID:    projectID,
		Tag:          tag,
		SubscriberID: subscriberID,
		Days:         days,
	}
	return rule, errors.Join(err1, err2, err3)
}

func addRule(ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project) (recordings.Rule, error) {
	rule, err := ruleOf(cmd, p.ID)
	if err != nil {
		return recordings.Rule{}, err
	}
	return a.Recordings.Retention().Add(ctx, rule)
}

func listRules(ctx context.Context, a *app, cmd *cobra.Command) ([]recordings.Rule, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return a.Recordings.Retention().List(ctx, p.ID)
}

func removeRule(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return tryProjects(ctx, a, cmd, func(projectID string) error {
		return a.Recordings.Retention().Delete(ctx, projectID, args[0])
	})
}

func (c recordingCommands) previewRules(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	extra, err := extraRule(cmd, p.ID)
	if err != nil {
		return err
	}

	sum, err := a.Recordings.Retention().Preview(ctx, p.ID, extra)
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

// extraRule returns the rule that the flags of a preview describe. The preview applies it together with
// the rules of the project. It is nil if the flags describe no rule.
func extraRule(cmd *cobra.Command, projectID string) (*recordings.Rule, error) {
	flags := cmd.Flags()
	if !flags.Changed("days") && !flags.Changed("tag") && !flags.Changed("subscriber") {
		return nil, nil
	}

	if err := cli.Need(cmd, "days"); err != nil {
		return nil, err
	}
	rule, err := ruleOf(cmd, projectID)
	if err != nil {
		return nil, err
	}
	return &rule, nil
}
