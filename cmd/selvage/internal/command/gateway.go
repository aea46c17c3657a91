package command

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// field returns a fact about a resource: the value of one of its members.
func field(title, name string, detail bool) cli.Fact[resource] {
	return cli.Fact[resource]{
		Name:   title,
		Detail: detail,
		Value: func(r resource) string {
			var many []string
			if json.Unmarshal(r.Fields[name], &many) == nil {
				return cli.Join(many)
			}
			var yes bool
			if json.Unmarshal(r.Fields[name], &yes) == nil {
				return cli.YesNo(yes)
			}
			if text := r.Fields.Text(name); text != "" {
				return text
			}
			if raw := string(r.Fields[name]); raw != "null" && raw != `""` {
				return raw
			}
			return ""
		},
	}
}

var gatewayView = cli.View[resource]{
	ID:   resourceView.ID,
	JSON: resourceView.JSON,
	Facts: []cli.Fact[resource]{
		{Name: "ID", Value: func(r resource) string { return r.ID }},
		{Name: "Project", Detail: true, Value: func(r resource) string { return r.ProjectID }},
		field("Name", "name", false),
		field("URI", "uri", false),
		field("Transport", "transport", false),
		field("Username", "username", true),
		field("Registers", "register", true),
		field("Caller ID", "caller_id", true),
		field("Prefixes", "prefixes", false),
		field("Calls from", "ip_auth", true),
		field("Codecs", "codecs", true),
		field("Encryption", "encryption", true),
		field("Most calls", "max_calls", true),
		{Name: "Created", Minor: true, Value: func(r resource) string { return cli.FormatTime(r.Created) }},
		{Name: "Updated", Detail: true, Value: func(r resource) string { return cli.FormatTime(r.Updated) }},
	},
}

// gatewayCommands implements the commands for SIP gateways.
type gatewayCommands struct{ *commands }

func (c gatewayCommands) command() *cobra.Command {
	n := noun[resource]{commands: c.commands, view: gatewayView, find: findGateway, list: listGateways}
	create := n.projectCommand("create", "Create a SIP gateway", []string{"name", "uri"}, c.createGateway)
	ls := n.listCommand("list", "List the SIP gateways of a project")
	show := n.showCommand("show ID", "Show a SIP gateway")
	update := n.changeCommand("update ID", "Update a SIP gateway: only the given flags change it",
		c.updateGateway)
	remove := n.deleteCommand("delete ID", "Delete a SIP gateway and its address",
		func(r resource) (what, name string) {
			return "This deletes the SIP gateway " + r.DisplayName + ". Calls no longer go through it.", r.DisplayName
		},
		func(ctx context.Context, a *app, r resource) error {
			return a.Fabric.Resources.DeleteThing(ctx, r.ProjectID, r.ID)
		})
	addGatewayFlags(create)
	addGatewayFlags(update)
	addProject(create, ls, show, update, remove)
	return cli.Noun("gateway", "SIP gateways: carriers, trunks and PBXs", create, ls, show, update, remove)
}

func addGatewayFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("name", "", "`name` of the gateway; it also names its address")
	f.String("uri", "", "`user@host` or user@host:port of the gateway")
	f.String("transport", "", "`transport` for SIP: udp, tcp or tls (default udp, or tls if "+
		"encryption is required)")
	f.String("username", "", "`name` for authentication at the gateway")
	f.Bool("password-stdin", false, "read the password for authentication at the gateway from stdin")
	f.Bool("register", false, "register at the gateway, to receive calls from there")
	f.String("caller-id", "", "`number` that called parties see")
	f.StringSlice("prefix", nil, "`prefix` of the phone numbers that are called through the gateway, such as +49; "+
		"repeatable")
	f.StringSlice("allow-from", nil, "`network` or address from which the gateway's calls come; repeatable")
	f.StringSlice("codec", nil, "`codec` to offer, the best first; repeatable (default OPUS, G722, PCMU, PCMA)")
	f.String("encryption", "", "`encryption` of media: required, optional or default (default default)")
	f.Int("max-calls", 0, "maximum number of calls through the gateway at the same time (default 100)")
}

// gatewayFlags maps flags to the members of the resource that they set.
var gatewayFlags = map[string]string{
	"name":       "name",
	"uri":        "uri",
	"transport":  "transport",
	"username":   "username",
	"register":   "register",
	"caller-id":  "caller_id",
	"prefix":     "prefixes",
	"allow-from": "ip_auth",
	"codec":      "codecs",
	"encryption": "encryption",
	"max-calls":  "max_calls",
}

// gatewayMembers returns the members that the flags set.
func (c gatewayCommands) gatewayMembers(cmd *cobra.Command) (map[string]json.RawMessage, error) {
	sent := make(map[string]json.RawMessage)
	for flag, member := range gatewayFlags {
		f := cmd.Flags().Lookup(flag)
		if !f.Changed {
			continue
		}

		var value any = f.Value.String()
		switch f.Value.Type() {
		case "stringSlice":
			value = *cli.Texts(cmd, flag)
		case "bool", "int":
			value = json.RawMessage(f.Value.String())
		}

		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		sent[member] = raw
	}

	if fromStdin, _ := cmd.Flags().GetBool("password-stdin"); fromStdin {
		password, err := c.Env.ReadSecret("password")
		if err != nil {
			return nil, err
		}
		sent["password"], _ = json.Marshal(password) // encoding a string cannot fail
	}
	return sent, nil
}

func (a *app) gatewayKind() *kinds.Kind { return a.Fabric.Resources.Kinds().ByType(fabric.GatewayKind) }

func (c gatewayCommands) createGateway(
	ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project,
) (resource, error) {
	sent, err := c.gatewayMembers(cmd)
	if err != nil {
		return resource{}, err
	}
	k := a.gatewayKind()
	for _, f := range k.Fields { // the API has no defaults for members that it requires
		if _, given := sent[f.Name]; !given && f.Required && f.Default != nil {
			sent[f.Name] = f.Default
		}
	}
	created, err := a.Fabric.Resources.Create(ctx, p.ID, k, sent)
	if err != nil {
		return resource{}, err
	}
	return resource{created, k}, nil
}

func (c gatewayCommands) updateGateway(
	ctx context.Context, a *app, cmd *cobra.Command, r resource,
) (resource, error) {
	sent, err := c.gatewayMembers(cmd)
	if err != nil {
		return r, err
	}
	changed, err := a.Fabric.Resources.Update(ctx, r.ProjectID, r.kind, r.ID, sent)
	if err != nil {
		return resource{}, err
	}
	return resource{changed, r.kind}, nil
}

func findGateway(ctx context.Context, a *app, cmd *cobra.Command, id string) (resource, error) {
	r, err := searchProjects(ctx, a, cmd, func(projectID string) (fabric.Resource, error) {
		r, err := a.Fabric.Resources.Find(ctx, projectID, a.gatewayKind(), id)
		if errors.Is(err, problem.NotFound) {
			return r, problem.NoSuch("SIP gateway")
		}
		return r, err
	})
	if err != nil {
		return resource{}, err
	}
	return resource{r, a.gatewayKind()}, nil
}

func listGateways(ctx context.Context, a *app, cmd *cobra.Command) ([]resource, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Resource], error) {
		return a.Fabric.Resources.List(ctx, p.ID, a.gatewayKind(), q)
	})
	if err != nil {
		return nil, err
	}
	gateways := make([]resource, len(found))
	for i, r := range found {
		gateways[i] = resource{r, a.gatewayKind()}
	}
	return gateways, nil
}
