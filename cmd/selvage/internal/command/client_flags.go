package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/idp"
)

// addClientFlags adds the flags of a client's settings.
func addClientFlags(cmd *cobra.Command) {
	bindClient(flagAdder{cmd.Flags()}, &idp.Client{})
	cmd.Flags().SortFlags = false // help shows the flags in the order in which they are bound
}

// setClient copies the values of the flags that are set to the fields of a client.
func setClient(cmd *cobra.Command, c *idp.Client) error {
	bindClient(flagReader{cmd}, c)
	if c.RequireACR == "any" {
		c.RequireACR = "" // the stored form of "any"
	}
	return errors.Join(setKeys(cmd, c), setPKCE(cmd, c))
}

// setPKCE copies the value of --pkce to a client.
func setPKCE(cmd *cobra.Command, c *idp.Client) error {
	rule := cli.Text(cmd, "pkce")
	if rule == nil {
		return nil
	}
	if *rule != "required" && *rule != "optional" {
		return cli.Usagef("--pkce: %q is neither required nor optional", *rule)
	}
	c.PKCEOptional = *rule == "optional"
	return nil
}

// A flagBinder connects flags to the fields of a client. Each flag is therefore listed only once,
// with its field and its help. There are two implementations: a flagAdder adds the flags to a
// command, and a flagReader copies their values to the fields.
type flagBinder interface {
	text(flag string, field *string, usage string)
	toggle(flag string, field *bool, usage string)

	// list binds a flag that may be repeated. words binds a flag that may be repeated, or have
	// several values, separated by commas.
	list(flag string, field *[]string, usage string)
	words(flag string, field *[]string, usage string)

	// special adds a flag whose value is not copied to a field as it is. Another function reads it.
	special(flag, usage string)
}

// A flagAdder adds flags to a set. It does not use the fields.
type flagAdder struct{ flags *pflag.FlagSet }

func (a flagAdder) text(flag string, _ *string, usage string) { a.flags.String(flag, "", usage) }
func (a flagAdder) toggle(flag string, _ *bool, usage string) { a.flags.Bool(flag, false, usage) }
func (a flagAdder) list(flag string, _ *[]string, usage string) {
	a.flags.StringArray(flag, nil, usage)
}
func (a flagAdder) words(flag string, _ *[]string, usage string) {
	a.flags.StringSlice(flag, nil, usage)
}
func (a flagAdder) special(flag, usage string) { a.flags.String(flag, "", usage) }

// A flagReader copies the values of the flags that are set to the fields.
type flagReader struct{ cmd *cobra.Command }

func (r flagReader) text(flag string, field *string, _ string)    { cli.Set(r.cmd, flag, field) }
func (r flagReader) toggle(flag string, field *bool, _ string)    { cli.SetBool(r.cmd, flag, field) }
func (r flagReader) list(flag string, field *[]string, _ string)  { cli.SetTexts(r.cmd, flag, field) }
func (r flagReader) words(flag string, field *[]string, _ string) { cli.SetTexts(r.cmd, flag, field) }
func (r flagReader) special(string, string)                       {}

// bindClient binds all flags of a client's settings, in the order of the help.
func bindClient(b flagBinder, c *idp.Client) {
	bindPages(b, c)
	bindLogout(b, c)
	bindRequests(b, c)
	bindSecurity(b, c)
	bindTokens(b, c)
}

// bindPages binds the flags for what the sign-in pages show about a client; see also flagLogos.
func bindPages(b flagBinder, c *idp.Client) {
	b.text("name", &c.Name, "`name` shown to people who sign in")
	b.text("brand-color", &c.BrandColor,
		"`color` of buttons on sign-in pages, such as #2f4b9b; \"\" uses the project's")
	b.special("logo",
		"`file` with a logo for sign-in pages, PNG, JPEG or WebP; \"\" uses the project's")
	b.special("dark-logo", "`file` with a logo for dark sign-in pages; \"\" uses the other one")
	b.text("tos-uri", &c.TermsURI,
		"`uri` of the terms of service, shown on sign-in pages; \"\" for none")
	b.text("policy-uri", &c.PolicyURI,
		"`uri` of the privacy policy, shown on sign-in pages; \"\" for none")
}

// bindLogout binds the flags for the redirect URIs of logins and logouts.
func bindLogout(b flagBinder, c *idp.Client) {
	b.list("redirect-uri", &c.RedirectURIs, "allowed redirect `uri` after login; repeatable")
	b.list("post-logout-redirect-uri", &c.LogoutURIs,
		"allowed redirect `uri` after logout; repeatable")
	b.text("backchannel-logout-uri", &c.BackchannelLogoutURI,
		"back-channel logout `uri`: receives a POST when a login that holds this client's tokens ends; \"\" for none")
	b.toggle("backchannel-logout-session-required", &c.BackchannelLogoutSession,
		"the client needs the sid in logout tokens, which always contain it")
	b.text("initiate-login-uri", &c.InitiateLoginURI,
		"`uri` at the client that starts a login, linked on account pages; \"\" for none")
	b.text("frontchannel-logout-uri", &c.FrontchannelLogoutURI,
		"front-channel logout `uri`: the page after a logout loads it in a frame, "+
			"so that the app ends its session in the same browser; \"\" for none")
	b.toggle("frontchannel-logout-session-required", &c.FrontchannelLogoutSession,
		"the client needs iss and sid in these requests, which always contain them")
}

// bindRequests binds the flags for a client's authentication, grants and scopes; see also setKeys
// and setPKCE.
func bindRequests(b flagBinder, c *idp.Client) {
	b.toggle("first-party", &c.FirstParty,
		"the client belongs to the operator: people are not asked for consent")
	b.text("auth-method", (*string)(&c.AuthMethod),
		"authentication `method`: none, client_secret_post, client_secret_basic, "+
			"private_key_jwt, tls_client_auth or self_signed_tls_client_auth (default by type)")
	b.special("jwks",
		"`file` with the public keys (JWKS) that verify the client's signatures, or with its "+
			"certificate (x5c)")
	b.special("jwks-uri",
		"`uri` of public keys instead of a file; they are read again when they change")
	b.words("grant", &c.Grants,
		"allowed `grant`: authorization_code, refresh_token, client_credentials, "+
			"device_code, or implicit for response types with tokens; repeatable (default by type)")
	b.words("response-type", &c.ResponseTypes,
		"allowed response `type`: "+strings.Join(idp.ResponseTypes(), ", ")+
			"; repeatable (default code)")
	b.words("scope", &c.Scopes, "allowed `scope`; repeatable: "+strings.Join(idp.Scopes(), " "))
	b.special("pkce", "`rule` for PKCE: required or optional (default required)")
	b.text("profile", (*string)(&c.Profile),
		"`profile` of requests: default, mobile-legacy or fapi2 (default default)")
}

// bindSecurity binds the flags that control how a client protects its authorization requests and
// responses.
func bindSecurity(b flagBinder, c *idp.Client) {
	b.toggle("require-pushed-authorization-requests", &c.RequirePushed,
		"the client must push its authorization requests to /oauth/par (RFC 9126)")
	b.toggle("require-signed-request-object", &c.RequireObject,
		"the client must sign its authorization requests (RFC 9101)")
	b.text("request-object-signing-alg", &c.RequestObjectAlg,
		"`algorithm` that signs its request objects: "+
			strings.Join(idp.AssertionAlgorithms(), ", ")+" (default: any of them)")
	b.list("request-uri", &c.RequestURIs,
		"`uri` of a request object that may be fetched; repeatable")
	b.text("authorization-signed-response-alg", (*string)(&c.ResponseAlg),
		"`algorithm` that signs responses with response_mode=jwt (JARM) (default: that of ID tokens)")

	b.toggle("dpop-bound-access-tokens", &c.DPoPBound,
		"the client's tokens are bound to a key (DPoP, RFC 9449)")
	b.toggle("tls-client-certificate-bound-access-tokens", &c.CertificateBound,
		"the client's tokens are bound to its certificate (mutual TLS, RFC 8705)")
	b.text("tls-client-auth-subject-dn", &c.CertificateSubject.DN,
		"with tls_client_auth: `name` of its certificate's subject, such as CN=app,O=Acme")
	b.text("tls-client-auth-san-dns", &c.CertificateSubject.DNS,
		"instead: DNS `name` in its certificate")
	b.text("tls-client-auth-san-uri", &c.CertificateSubject.URI,
		"instead: `uri` in its certificate")
	b.text("tls-client-auth-san-ip", &c.CertificateSubject.IP,
		"instead: IP `address` in its certificate")
	b.text("tls-client-auth-san-email", &c.CertificateSubject.Email,
		"instead: email `address` in its certificate")
}

// bindTokens binds the flags for a client's tokens and for the subjects in them.
func bindTokens(b flagBinder, c *idp.Client) {
	b.text("access-token", (*string)(&c.AccessToken),
		"`kind` of access tokens: fabric or jwt (default by type)")
	b.text("id-token-alg", (*string)(&c.IDTokenAlg),
		"`algorithm` that signs ID tokens: RS256, ES256, PS256 or EdDSA (default RS256)")
	b.text("userinfo-signed-response-alg", (*string)(&c.UserinfoAlg),
		"`algorithm` that signs userinfo: RS256, ES256, PS256 or EdDSA (default: plain JSON)")
	b.list("resource", &c.Resources,
		"`uri` of a service that tokens may be requested for (RFC 8707); repeatable")
	b.text("acr", &c.RequireACR,
		"`class` that each login must have: 1, 2 for two factors, or any (default any)")
	b.text("subject-type", (*string)(&c.SubjectType),
		"`kind` of subjects: public, or pairwise, one for each sector (default public)")
	b.text("sector-identifier-uri", &c.SectorURI,
		"`uri` of the sector's list of redirect URIs, if they have several hosts; changing it changes all subjects")
}
