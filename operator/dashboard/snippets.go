package dashboard

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/idp"
)

// A snippet is a few lines to copy, with the ids of what is shown.
type snippet struct{ Title, Text string }

// quoteShell quotes a word for a shell: what people or backends chose may be anything.
func quoteShell(word string) string {
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
		curl += fmt.Sprintf("\n\ncurl -u %s:KEY -X %s -H 'Content-Type: application/json' \\\n  -d %s \\\n  %s", v.project.ID, k.Update, quoteShell(string(plain(k.Examples[1]))), at)
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

// clientSnippets are what an app does that is registered as a client: sign somebody in, or
// get a token for itself. None is for clients that prove themselves by keys of their own.
func (a *clientPages) clientSnippets(c idp.Client) (all []snippet) {
	issuer, scope := a.AuthURL+"/", strings.Join(c.Scopes, " ")
	var secret string // of curl
	switch c.AuthMethod {
	case idp.AuthNone:
		secret = "-d client_id=" + c.ID
	case idp.AuthBasic:
		secret = "-u " + c.ID + ":SECRET"
	case idp.AuthPost:
		secret = "-d client_id=" + c.ID + " -d client_secret=SECRET"
	default:
		return nil
	}
	if c.May(idp.GrantCode) && c.May(idp.GrantRefresh) && c.Type == idp.SPA && len(c.RedirectURIs) > 0 {
		all = append(all, snippet{"oidc-client-ts",
			fmt.Sprintf(singlePage, quoteScript(issuer), quoteScript(c.ID), quoteScript(c.RedirectURIs[0]), quoteScript(scope))},
			snippet{"Our SDK", fmt.Sprintf(
				ownSDK, a.PublicURL, quoteScript(issuer), quoteScript(c.ID), quoteScript(c.RedirectURIs[0]))})
	}
	if c.May(idp.GrantCode) && c.Type == idp.Web && len(c.RedirectURIs) > 0 {
		proof, options := "client.ClientSecretBasic(SECRET)", ""
		if c.AuthMethod == idp.AuthPost {
			proof = "client.ClientSecretPost(SECRET)"
		} else if c.AuthMethod == idp.AuthNone {
			proof = "client.None()"
		}
		if strings.HasPrefix(issuer, "http:") {
			options = ", { execute: [client.allowInsecureRequests] }"
		}
		all = append(all, snippet{"openid-client",
			fmt.Sprintf(webApp, quoteScript(issuer), quoteScript(c.ID), proof, options, quoteScript(c.RedirectURIs[0]),
				quoteScript(scope))})
	}
	if c.May(idp.GrantClientCredentials) {
		all = append(all, snippet{"curl",
			fmt.Sprintf("# a token of its own\ncurl %s -d grant_type=client_credentials \\\n  -d scope=%s %soauth/token", secret, quoteShell(scope), issuer)})
	}
	if c.May(idp.GrantDevice) {
		all = append(all, snippet{"curl",
			fmt.Sprintf("# what the device shows, and then asks for\ncurl %s -d scope=%s %soauth/device_authorization\ncurl %s -d grant_type=%s \\\n  -d device_code=CODE %soauth/token", secret, quoteShell(scope), issuer, secret, idp.GrantDevice, issuer)})
	}
	return all
}

// quoteScript writes a text of a script, which may stand in a page: there </script> ends it in
// a text as well, and addresses have what whoever registered the client wrote.
func quoteScript(text string) string { return strings.ReplaceAll(strconv.Quote(text), "<", `\u003c`) }

const singlePage = `// npm install oidc-client-ts
import { UserManager } from "oidc-client-ts";

const manager = new UserManager({
  authority: %s,
  client_id: %s,
  redirect_uri: %s,
  scope: %s,
});
await manager.signinRedirect();              // on the page that signs in
const user = await manager.signinCallback(); // on the page of redirect_uri
user.access_token;`

const ownSDK = `<script src="%s/sdk/selvage.js"></script>
<script type="module">
  const app = Selvage.createClient({
    issuer: %s,
    clientId: %s,
    redirectUri: %s,
  });
  await app.handleRedirect(); // true where a login has just come back
  if (!app.isSignedIn) await app.login();
  console.log(await app.me());
</script>`

const webApp = `// npm install openid-client
import * as client from "openid-client";

const config = await client.discovery(new URL(%s), %s, undefined, %s%s);
const verifier = client.randomPKCECodeVerifier(); // kept in the session, with state
const state = client.randomState();
const to = client.buildAuthorizationUrl(config, {
  redirect_uri: %s,
  scope: %s,
  state,
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
});
// send the browser there; when it is back, url is the address that it came to:
const tokens = await client.authorizationCodeGrant(config, url, { pkceCodeVerifier: verifier, expectedState: state });
tokens.claims().sub;`
