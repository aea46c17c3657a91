package command

import (
	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

// choices holds the values of flags that have few values. Values that only a database knows, such as ids,
// are not completed.
var choices = map[string][]string{
	"output":              cli.Formats,
	"type":                {"spa", "native", "web", "service"},
	"auth-method":         cli.Strings(idp.AuthMethods()),
	"pkce":                {"required", "optional"},
	"profile":             {"default", "mobile-legacy", "fapi2"},
	"access-token":        {"fabric", "jwt"},
	"grant":               idp.GrantNames(),
	"media-auth":          fabric.MediaAuths,
	"client-registration": cli.Strings(fabric.ClientRegistrations()),
	"state":               {"pending", "delivered", "dead"},
	"event":               cli.Strings(fabric.EventNames()),
	"id-token-alg":        {"RS256", "ES256", "PS256", "EdDSA"},
	"subject-type":        {"public", "pairwise"},
	"services":            {config.IDP, config.Fabric, config.Relay, config.Recordings, config.Dashboard},
}

// addCompletion adds the command that prints completions, for the shells that are documented.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return // the line above has added this command
	}
	cmd.Short = "Print completions for a shell"
	cmd.Args = cli.KnownCommand
	cmd.RunE = cli.Help
	for _, sub := range cmd.Commands() {
		sub.Short = "Print completions for " + sub.Name()
		sub.Hidden = sub.Name() == "powershell"
	}
}

// completeFlags registers completions for the flags of cmd and all commands below it. cobra
// itself completes the names of commands and flags.
func completeFlags(cmd *cobra.Command) {
	own := cmd.LocalFlags() // called once, since cobra collects the flags on every call
	complete := func(flag string, values []string) {
		if values != nil && own.Lookup(flag) != nil {
			fixed := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
			_ = cmd.RegisterFlagCompletionFunc(flag, fixed) // fails only for unknown flags
		}
	}

	for flag, values := range choices {
		complete(flag, values)
	}
	if cmd.HasParent() {
		scopes := map[string][]string{"key": cli.Strings(fabric.Scopes()), "client": idp.Scopes()}
		complete("scope", scopes[cmd.Parent().Name()])
		recording := map[string][]string{"project": {"off", "on"}, "subscriber": {"inherit", "off", "on"}}
		complete("record-calls", recording[cmd.Parent().Name()])
	}

	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}
