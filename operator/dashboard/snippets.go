package dashboard

import (
	"fmt"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
)

// A snippet is a few lines to copy, with the ids of what is shown.
type snippet struct{ Title, Text string }

// shell quotes a word for a shell: what people or backends chose may be anything.
func shell(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !strings.ContainsRune(plainInShell, r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+"

// resourceSnippets are what one does with a resource: read it, change it, reach it.
func (a *resourcePages) resourceSnippets(v *visit, k *kinds.Kind, r fabric.Resource, addresses []fabric.Address) []snippet {
	at := a.PublicURL + "/api/fabric/resources/" + k.Path + "/" + r.ID
	if k.Path == "" {
		at = a.PublicURL + "/api/fabric/resources/" + r.ID
	}
	curl := fmt.Sprintf("# KEY is an API key of the project\ncurl -u %s:KEY %s", v.project.ID, at)
	if len(k.Examples) > 1 {
		curl += fmt.Sprintf("\n\ncurl -u %s:KEY -X %s -H 'Content-Type: application/json' \\\n  -d %s \\\n  %s", v.project.ID, k.Update, shell(string(plain(k.Examples[1]))), at)
	}
	all := []snippet{{"curl", curl}}
	if len(addresses) > 0 {
		all = append(all, a.addressSnippet(v, addresses[0]))
	}
	return append(all, snippet{"Command line", "selvage resource show " + r.ID + " -o json"})
}

// addressSnippet reaches an address from a page: a guest's token of the backend, the
// stock SDK in the browser.
func (a *site) addressSnippet(v *visit, at fabric.Address) snippet {
	channel := "audio"
	for _, c := range at.Channels {
		if c == "video" {
			channel = c
		}
	}
	return snippet{"JavaScript", fmt.Sprintf(`// On your backend: a token that reaches this address alone, for two hours.
const answer = await fetch("%s/api/fabric/guests/tokens", {
  method: "POST",
  headers: { "Content-Type": "application/json", Authorization: "Basic " + btoa("%s:" + KEY) },
  body: JSON.stringify({ allowed_addresses: ["%s"] }),
});
const { token } = await answer.json();

// In the browser, with npm's @signalwire/js:
import { SignalWire } from "@signalwire/js";

const client = await SignalWire({ token });
const call = await client.dial({ to: "%s?channel=%s", rootElement: document.body });
await call.start();`, a.PublicURL, v.project.ID, at.ID, at.Path(), channel)}
}
