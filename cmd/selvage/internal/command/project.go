package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var projectView = cli.View[fabric.Project]{
	ID: func(p fabric.Project) string { return p.ID },
	JSON: func(p fabric.Project) any {
		return struct {
			fabric.Project
			Logo      string   `json:"logo,omitempty"`
			DarkLogo  string   `json:"dark_logo,omitempty"`
			CreatedAt cli.Time `json:"created_at"`
			UpdatedAt cli.Time `json:"updated_at"`
		}{
			Project:   p,
			Logo:      p.Logo,
			DarkLogo:  p.DarkLogo,
			CreatedAt: cli.UTC(p.Created),
			UpdatedAt: cli.UTC(p.Updated),
		}
	},
	Facts: []cli.Fact[fabric.Project]{
		{Name: "ID", Value: func(p fabric.Project) string { return p.ID }},
		{Name: "Name", Value: func(p fabric.Project) string { return p.Name }},
		{
			Name:   "Price of a minute",
			Detail: true,
			Value:  func(p fabric.Project) string { return formatPrice(p.RecordRate) },
		},
		{Name: "Media", Detail: true, Value: func(p fabric.Project) string { return mediaText[p.MediaAuth] }},
		{Name: "Two factors", Detail: true, Value: func(p fabric.Project) string { return cli.YesNo(p.RequireFactor) }},
		{
			Name:   "Registration",
			Detail: true,
			Value:  func(p fabric.Project) string { return registrationText[p.Registration] },
		},
		{
			Name:   "Record calls",
			Detail: true,
			Value:  func(p fabric.Project) string { return recordText[p.RecordCalls] },
		},
		{
			Name:   "OAuth clients",
			Detail: true,
			Value: func(p fabric.Project) string {
				return clientRegistrationText[p.ClientRegistration]
			},
		},
		{
			Name:   "Outbound calls",
			Detail: true,
			Value:  func(p fabric.Project) string { return outboundText[p.OutboundCalls] },
		},
		{
			Name:   "Outbound prefixes",
			Detail: true,
			Value:  func(p fabric.Project) string { return cli.Join(p.OutboundPrefixes.List()) },
		},
		{Name: "Recording quota", Detail: true, Value: func(p fabric.Project) string { return formatQuota(p) }},
		{
			Name:   "Uploads",
			Detail: true,
			Value:  func(p fabric.Project) string { return orNoLimit(p.UploadRate, "per minute") },
		},
		{Name: "Color", Detail: true, Value: func(p fabric.Project) string { return p.Color }},
		{Name: "Logo", Detail: true, Value: func(p fabric.Project) string { return p.Logo }},
		{Name: "Dark logo", Detail: true, Value: func(p fabric.Project) string { return p.DarkLogo }},
		{Name: "Terms", Detail: true, Value: func(p fabric.Project) string { return p.Terms }},
		{Name: "Privacy", Detail: true, Value: func(p fabric.Project) string { return p.Privacy }},
		{Name: "Created", Minor: true, Value: func(p fabric.Project) string { return cli.FormatTime(p.Created) }},
		{Name: "Updated", Detail: true, Value: func(p fabric.Project) string { return cli.FormatTime(p.Updated) }},
	},
}

// mediaText explains the values of media-auth.
var mediaText = map[string]string{
	"public": "public: anyone with the URL",
	"basic":  "basic: callers with credentials",
	"signed": "signed: callers with credentials or a signed link",
}

// registrationText explains the values of registration.
var registrationText = map[fabric.Registration]string{
	fabric.RegistrationOff:  "off: only operators and backends create accounts",
	fabric.RegistrationOpen: "open: people create accounts themselves and confirm their email address",
}

// recordText explains the values of a project's record-calls.
var recordText = map[fabric.RecordCalls]string{
	fabric.RecordOff: "off: calls are recorded only if a subscriber's setting is on",
	fabric.RecordOn:  "on: calls are recorded unless the settings of all their subscribers are off",
}

// outboundText explains the values of outbound-calls.
var outboundText = map[fabric.OutboundCalls]string{
	fabric.OutboundOff: "off: nobody calls phone numbers or SIP gateways",
	fabric.OutboundOn:  "on: subscribers call phone numbers with the outbound prefixes",
}

// clientRegistrationText explains the values of client-registration.
var clientRegistrationText = map[fabric.ClientRegistration]string{
	fabric.ClientsOff:     "off: only operators register OAuth clients",
	fabric.ClientsByToken: "token: clients with an initial access token register themselves",
	fabric.ClientsOpen:    "open: any client can register itself",
}

// orNoLimit formats a limit. 0 means no limit.
func orNoLimit(n int64, unit string) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// formatPrice formats millionths of a dollar.
func formatPrice(micros int64) string { return fmt.Sprintf("$%d.%06d", micros/1e6, micros%1e6) }

func (c *commands) projectCommand() *cobra.Command {
	n := noun[fabric.Project]{
		commands: c,
		view:     projectView,
		find: func(ctx context.Context, a *app, _ *cobra.Command, id string) (fabric.Project, error) {
			return a.Fabric.Projects.Find(ctx, id)
		},
		list: func(ctx context.Context, a *app, _ *cobra.Command) ([]fabric.Project, error) {
			return page.Every(ctx, a.Fabric.Projects.List)
		},
	}

	create := cli.Command("create NAME", "Create a project", c.createProject)
	ls := n.listCommand("list", "List projects")
	show := n.showCommand("show ID", "Show a project")
	update := n.command("update ID", "Update a project: only the given flags change it", updateProject)
	addProjectFlags(update)
	remove := n.deleteCommand("delete ID", "Delete a project and everything in it",
		func(p fabric.Project) (what, name string) {
			what = fmt.Sprintf("This deletes the project %s and all its keys, clients, subscribers and recordings.",
				p.Name)
			return what, p.Name
		},
		func(ctx context.Context, a *app, p fabric.Project) error {
			return a.Fabric.Projects.Delete(ctx, p.ID)
		})
	return cli.Noun("project", "Projects: everything else belongs to one", create, ls, show, update, remove)
}

func addProjectFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("name", "", "`name` of the project")
	f.Int64("record-rate", 0, "`price` of a recorded minute, in millionths of a dollar")
	f.Int64("recording-quota", 0, "maximum `bytes` that the recordings may use; 0 for no limit")
	f.Int64("upload-rate", 0, "maximum `uploads` of recordings per minute; 0 for no limit")
	f.String("color", "", "`color` of buttons on pages and in mails, such as #2f4b9b")
	f.String("logo", "", "`file` with a logo for pages and mails, PNG, JPEG or WebP; \"\" for none")
	f.String("dark-logo", "", "`file` with a logo for dark pages; \"\" uses the other one")
	f.String("tos-uri", "", "`uri` of the terms of service, shown on sign-in pages; \"\" for none")
	f.String("policy-uri", "", "`uri` of the privacy policy, shown on sign-in pages; \"\" for none")
	f.String("media-auth", "", "`access` to the media of recordings: public (anyone), basic (callers with "+
		"credentials) or signed (those, and signed links)")
	f.Bool("require-factor", false, "require two factors for every login of a subscriber; =false requires one")
	f.String("registration", "", "`rule` for new accounts: off (operators and backends) or open (people themselves, "+
		"who confirm their email address)")
	f.String("record-calls", "", "`setting`: off, or on to record calls; a subscriber can override it. In many "+
		"countries everyone on a call must consent")
	f.String("client-registration", "", "`rule` for new OAuth clients: off (operators), token (also holders of an "+
		"initial access token) or open (anyone; only one project)")
	f.String("outbound-calls", "", "`setting`: off, or on to let subscribers call phone numbers through SIP gateways")
	f.StringSlice("outbound-prefix", nil, "`prefix` of the phone numbers that may be called, such as +49; repeatable, "+
		"\"\" for none")
}

// createProject creates a project. It also creates the data directory if needed, because
// `selvage project create` is the first command on a server without a demo.
func (c *commands) createProject(cmd *cobra.Command, args []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	if !conf.Database.Shared() {
		if err := datadir.Make(conf.Data); err != nil {
			return err
		}
	}

	return c.open(cmd.Context(), conf, server.Options{}, func(a *app) error {
		p, err := a.Fabric.Projects.Create(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, projectView, p)
	})
}

func updateProject(ctx context.Context, a *app, cmd *cobra.Command, args []string) (fabric.Project, error) {
	change := fabric.ProjectChange{
		Name:          cli.Text(cmd, "name"),
		MediaAuth:     cli.Text(cmd, "media-auth"),
		Color:         cli.Text(cmd, "color"),
		Terms:         cli.Text(cmd, "tos-uri"),
		Privacy:       cli.Text(cmd, "policy-uri"),
		RequireFactor: cli.Bool(cmd, "require-factor"),
		Registration:  (*fabric.Registration)(cli.Text(cmd, "registration")),
		RecordCalls:   (*fabric.RecordCalls)(cli.Text(cmd, "record-calls")),

		ClientRegistration: (*fabric.ClientRegistration)(cli.Text(cmd, "client-registration")),
		OutboundCalls:      (*fabric.OutboundCalls)(cli.Text(cmd, "outbound-calls")),
	}
	if prefixes := cli.Texts(cmd, "outbound-prefix"); prefixes != nil {
		joined := fabric.JoinPrefixes(*prefixes)
		change.OutboundPrefixes = &joined
	}

	numbers := map[string]**int64{
		"record-rate":     &change.RecordRate,
		"recording-quota": &change.RecordingQuota,
		"upload-rate":     &change.UploadRate,
	}
	for name, field := range numbers {
		if !cmd.Flags().Changed(name) {
			continue
		}
		n, err := cmd.Flags().GetInt64(name)
		if err != nil {
			return fabric.Project{}, err
		}
		*field = &n
	}

	var err error
	change.Logos, err = flagLogos(cmd)
	if err != nil {
		return fabric.Project{}, err
	}
	return a.Fabric.Projects.Update(ctx, args[0], change)
}
