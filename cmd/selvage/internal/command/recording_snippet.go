package command

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
)

//go:embed snippets.txt
var snippetTexts string

// snippets holds one template for each switch. In a template, [[.URL]] is the URL of the ingest
// key, and [[.Project]] is the project. The delimiters are not braces, because the configurations of
// switches contain braces.
var snippets = template.Must(template.New("").Delims("[[", "]]").Parse(snippetTexts))

// switches reports, for the name of each switch, whether its configuration contains an ingest key.
var switches = map[string]bool{"asterisk": true, "freeswitch": true, "jambonz": false, "rtpengine": true}

func (c recordingCommands) snippetCommand() *cobra.Command {
	names := slices.Sorted(maps.Keys(switches))
	snippet := cli.Command("snippet SWITCH",
		"Print a configuration with which a switch stores recordings here",
		c.with(c.printSnippet))
	snippet.ValidArgs = names
	last := len(names) - 1
	known := strings.Join(names[:last], ", ") + " or " + names[last]
	snippet.Long = "SWITCH is " + known + `. Except for jambonz, the configuration
contains a URL with an ingest key. Without --ingest-key, a new key is created for it:
selvage ingest-key revoke revokes it.`
	snippet.Flags().String("ingest-key", "", "`key` to use, instead of a new one")
	return snippet
}

// printSnippet prints the configuration of a switch. If the configuration needs an ingest key and
// --ingest-key names none, printSnippet creates one.
func (c recordingCommands) printSnippet(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	name := args[0]
	hasKey, known := switches[name]
	if !known {
		names := slices.Sorted(maps.Keys(switches))
		return cli.Usagef("no snippet for %q: use %s", name, strings.Join(names, ", "))
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	secret, _ := cmd.Flags().GetString("ingest-key")
	if !hasKey && secret != "" {
		return cli.Usagef("%s needs no ingest key: its recordings are imported from a bucket", name)
	}

	values := struct{ Project, URL, KeyID string }{Project: p.ID}
	if hasKey && secret == "" {
		created, newSecret, err := a.Fabric.IngestKeys.Create(ctx, p.ID, name, nil)
		if err != nil {
			return err
		}
		secret = newSecret
		values.KeyID = created.ID
	}
	if hasKey {
		values.URL = a.Where.Public + "/ingest/" + secret + "/"
	}

	var text bytes.Buffer
	if err := snippets.ExecuteTemplate(&text, name, values); err != nil {
		return fmt.Errorf("writing the snippet: %w", err)
	}
	_, err = text.WriteTo(c.Stdout)
	return err
}
