package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/idp"
)

// A snippet is code for the operator to copy. It contains the ids of the objects on the page.
type snippet struct{ Title, Text string }

// quoteShell quotes a word for a shell. References and scopes may contain any character.
func quoteShell(word string) string {
	isSpecial := func(r rune) bool { return !strings.ContainsRune(plainInShell, r) }
	if word != "" && !strings.ContainsFunc(word, isSpecial) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+"

// resourceSnippets returns code that reads and changes a resource. If the resource answers calls,
// the code also calls it.
func (a *resourcePages) resourceSnippets(
	v *visit, k *kinds.Kind, r fabric.Resource, addresses []fabric.Address,
) []snippet {
	one := a.PublicURL + "/api/fabric/resources/" + k.Path + "/" + r.ID
	if k.Path == "" {
		one = a.PublicURL + "/api/fabric/resources/" + r.ID
	}
	curl := fmt.Sprintf("# KEY is an API key of the project\ncurl -u %s:KEY %s", v.project.ID, one)
	if len(k.Examples) > 1 {
		change := quoteShell(string(plain(k.Examples[1])))
		curl += fmt.Sprintf("\n\ncurl -u %s:KEY -X %s -H 'Content-Type: application/json' \\\n  -d %s \\\n  %s",
			v.project.ID, k.Update, change, one)
	}
	snippets := []snippet{{Title: "curl", Text: curl}}
	if len(addresses) > 0 && calls.CanReach(addresses[0]) {
		snippets = append(snippets, a.addressSnippet(v, addresses[0]))
	}
	return append(snippets, snippet{Title: "Command line", Text: "selvage resource show " + r.ID + " -o json"})
}

// addressSnippet returns code that calls an address from a web page: the backend creates a guest
// token, and the SDK in the browser uses it.
func (a *site) addressSnippet(v *visit, address fabric.Address) snippet {
	channel := "audio"
	if slices.Contains(address.Channels, "video") {
		channel = "video"
	}

	warning := ""
	if a.NoCalls {
		warning = "// This server carries no calls: listen_media is off, or it does not serve the relay.\n\n"
	}

	code := fmt.Sprintf(callAddress, a.PublicURL, v.project.ID, address.ID, address.Path(), channel)
	return snippet{Title: "JavaScript", Text: warning + code}
}

const callAddress = `// On your backend: a token that reaches only this address, for two hours.
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
await call.start();`

// clientSnippets returns code for an app that is registered as c. The code signs users in, or gets
// a token for the app itself. clientSnippets returns no code for clients that authenticate with a key
// or a certificate.
func (a *clientPages) clientSnippets(c idp.Client) (snippets []snippet) {
	var credentials string // command-line arguments for curl
	switch c.AuthMethod {
	case idp.AuthNone:
		credentials = "-d client_id=" + c.ID
	case idp.AuthBasic:
		credentials = "-u " + c.ID + ":SECRET"
	case idp.AuthPost:
		credentials = "-d client_id=" + c.ID + " -d client_secret=SECRET"
	default:
		return nil
	}

	if c.May(idp.GrantCode) && len(c.RedirectURIs) > 0 {
		snippets = a.loginSnippets(c)
	}
	issuer, scope := a.AuthURL+"/", quoteShell(strings.Join(c.Scopes, " "))
	if c.May(idp.GrantClientCredentials) {
		curl := fmt.Sprintf("# a token for the service itself\n"+
			"curl %s -d grant_type=client_credentials \\\n  -d scope=%s %soauth/token", credentials, scope, issuer)
		snippets = append(snippets, snippet{Title: "curl", Text: curl})
	}
	if c.May(idp.GrantDevice) {
		curl := fmt.Sprintf("# what the device shows, then what it polls for\n"+
			"curl %s -d scope=%s %soauth/device_authorization\n"+
			"curl %s -d grant_type=%s \\\n  -d device_code=CODE %soauth/token",
			credentials, scope, issuer, credentials, idp.GrantDevice, issuer)
		snippets = append(snippets, snippet{Title: "curl", Text: curl})
	}
	return snippets
}

// loginSnippets returns code that signs users in, for browser apps and web apps.
func (a *clientPages) loginSnippets(c idp.Client) []snippet {
	issuer, id := quoteScript(a.AuthURL+"/"), quoteScript(c.ID)
	redirect, scope := quoteScript(c.RedirectURIs[0]), quoteScript(strings.Join(c.Scopes, " "))
	switch {
	case c.Type == idp.SPA && c.May(idp.GrantRefresh):
		return []snippet{
			{"oidc-client-ts", fmt.Sprintf(singlePage, issuer, id, redirect, scope)},
			{"selvage SDK", fmt.Sprintf(ownSDK, a.PublicURL, issuer, id, redirect)},
		}
	case c.Type == idp.Web:
		proof, options := "client.ClientSecretBasic(SECRET)", ""
		if c.AuthMethod == idp.AuthPost {
			proof = "client.ClientSecretPost(SECRET)"
		} else if c.AuthMethod == idp.AuthNone {
			proof = "client.None()"
		}
		if strings.HasPrefix(a.AuthURL, "http:") {
			options = ", { execute: [client.allowInsecureRequests] }"
		}
		return []snippet{{"openid-client", fmt.Sprintf(webApp, issuer, id, proof, options, redirect, scope)}}
	}
	return nil
}

// quoteScript quotes text for a script in a page. The text </script> would end the script even
// within a string, and the client's addresses may contain it.
func quoteScript(text string) string { return strings.ReplaceAll(strconv.Quote(text), "<", `\u003c`) }

const singlePage = `// npm install oidc-client-ts
import { UserManager } from "oidc-client-ts";

const manager = new UserManager({
  authority: %s,
  client_id: %s,
  redirect_uri: %s,
  scope: %s,
});
await manager.signinRedirect();              // on the page that starts the login
const user = await manager.signinCallback(); // on the page at redirect_uri
user.access_token;`

const ownSDK = `<script src="%s/sdk/selvage.js"></script>
<script type="module">
  const app = Selvage.createClient({
    issuer: %s,
    clientId: %s,
    redirectUri: %s,
  });
  await app.handleRedirect(); // true after returning from a login
  if (!app.isSignedIn) await app.login();
  console.log(await app.me());
</script>`

const webApp = `// npm install openid-client
import * as client from "openid-client";

const config = await client.discovery(new URL(%s), %s, undefined, %s%s);
const verifier = client.randomPKCECodeVerifier(); // keep it in the session, with state
const state = client.randomState();
const to = client.buildAuthorizationUrl(config, {
  redirect_uri: %s,
  scope: %s,
  state,
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
});
// Redirect the browser to it. When it returns, url is the URL that it was sent to:
const tokens = await client.authorizationCodeGrant(config, url, { pkceCodeVerifier: verifier, expectedState: state });
tokens.claims().sub;`

// tokenSnippets returns code that uses a token.
func (a *tokenPages) tokenSnippets(token string) []snippet {
	return []snippet{
		{"JavaScript", fmt.Sprintf(useToken, token)},
		{"curl", fmt.Sprintf("curl -H 'Authorization: Bearer %s' \\\n  %s/api/fabric/addresses", token, a.PublicURL)},
	}
}

// embedSnippets returns code that uses an embed key.
func (a *tokenPages) embedSnippets(key string) []snippet {
	return []snippet{
		{"curl", fmt.Sprintf("# a guest token for each visitor\ncurl -H 'Content-Type: application/json' "+
			"-d '{\"token\":\"%s\"}' \\\n  %s/api/fabric/embeds/tokens", key, a.PublicURL)},
		{"JavaScript", fmt.Sprintf(useEmbedKey, a.PublicURL, key)},
	}
}

const useToken = `import { SignalWire } from "@signalwire/js"; // 3.27 to 3.30

const client = await SignalWire({
  token: "%s",
});
const { addresses } = await client.address.getAddresses();`

const useEmbedKey = `const answer = await fetch("%s/api/fabric/embeds/tokens", {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ token: "%s" }),
});
const { token } = await answer.json();`
