package command

import (
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/spf13/cobra"
)

// choices are the values of flags that have few, for completions. What is in a database
// is not looked up while somebody types.
var choices = map[string][]string{
	"output":       {"table", "json", "id"},
	"type":         {"spa", "native", "web", "service"},
	"auth-method":  {"none", "client_secret_post", "client_secret_basic", "private_key_jwt"},
	"pkce":         {"required", "optional"},
	"profile":      {"default", "mobile-legacy"},
	"access-token": {"fabric", "jwt"},
	"grant":        {"authorization_code", "refresh_token", "client_credentials", "device_code"},
	"media-auth":   fabric.MediaAuths,
	"state":        {"pending", "delivered", "dead"},
	"event":        cli.Strings(fabric.EventNames()),
	"id-token-alg": {"RS256", "ES256", "PS256", "EdDSA"},
	"subject-type": {"public", "pairwise"},
	"services":     {config.IDP, config.Fabric, config.Relay, config.Recordings, config.Dashboard},
}

// addCompletion adds the command that prints completions, for the shells that have a
// line in the documents.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return // it was added a line above
	}
	cmd.Short = "Print completions for a shell"
	cmd.Args, cmd.RunE = cli.KnownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, sub := range cmd.Commands() {
		sub.Short = "Print completions for " + sub.Name()
		sub.Hidden = sub.Name() == "powershell"
	}
}

// completeFlags lets shells complete the flags that have few values. Completions of
// cobra itself know the commands and the names of flags.
func completeFlags(root *cobra.Command) {
	scopes := map[string][]string{"key": cli.Strings(fabric.Scopes()), "client": idp.Scopes()}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		own := cmd.LocalFlags() // which cobra gathers anew each time
		for name, values := range choices {
			if own.Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(
					name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
			}
		}
		if own.Lookup("scope") != nil && cmd.HasParent() && scopes[cmd.Parent().Name()] != nil {
			_ = cmd.RegisterFlagCompletionFunc(
				"scope", cobra.FixedCompletions(scopes[cmd.Parent().Name()], cobra.ShellCompDirectiveNoFileComp))
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}
