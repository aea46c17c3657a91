package dashboard

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/selvage/selvage/idp"
)

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
			fmt.Sprintf(singlePage, script(issuer), script(c.ID), script(c.RedirectURIs[0]), script(scope))},
			snippet{"Our SDK", fmt.Sprintf(
				ownSDK, a.PublicURL, script(issuer), script(c.ID), script(c.RedirectURIs[0]))})
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
			fmt.Sprintf(webApp, script(issuer), script(c.ID), proof, options, script(c.RedirectURIs[0]),
				script(scope))})
	}
	if c.May(idp.GrantClientCredentials) {
		all = append(all, snippet{"curl",
			fmt.Sprintf("# a token of its own\ncurl %s -d grant_type=client_credentials \\\n  -d scope=%s %soauth/token", secret, shell(scope), issuer)})
	}
	if c.May(idp.GrantDevice) {
		all = append(all, snippet{"curl",
			fmt.Sprintf("# what the device shows, and then asks for\ncurl %s -d scope=%s %soauth/device_authorization\ncurl %s -d grant_type=%s \\\n  -d device_code=CODE %soauth/token", secret, shell(scope), issuer, secret, idp.GrantDevice, issuer)})
	}
	return all
}

// script writes a text of a script, which may stand in a page: there </script> ends it in
// a text as well, and addresses have what whoever registered the client wrote.
func script(text string) string { return strings.ReplaceAll(strconv.Quote(text), "<", `\u003c`) }

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
