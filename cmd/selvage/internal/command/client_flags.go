package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/keys"
)

// addClientFlags adds the flags of a client's settings, in the order of the help.
func addClientFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	addPageFlags(f)
	addLogoutFlags(f)
	addRequestFlags(f)
	addSecurityFlags(f)
	addTokenFlags(f)
	f.SortFlags = false
}

// setClient copies the flags that are set to the fields of a client.
func setClient(cmd *cobra.Command, c *idp.Client) error {
	setPages(cmd, c)
	setLogout(cmd, c)
	setTokens(cmd, c)
	setSecurity(cmd, c)
	return setRequests(cmd, c)
}

// addPageFlags adds the flags for what the sign-in pages show about a client.
func addPageFlags(f *pflag.FlagSet) {
	f.String("name", "", "`name` shown to people who sign in")
	f.String("brand-color", "", "`color` of buttons on sign-in pages, such as #2f4b9b; \"\" uses the project's")
	f.String("logo", "", "`file` with a logo for sign-in pages, PNG, JPEG or WebP; \"\" uses the project's")
	f.String("dark-logo", "", "`file` with a logo for dark sign-in pages; \"\" uses the other one")
	f.String("tos-uri", "", "`uri` of the terms of service, shown on sign-in pages; \"\" for none")
	f.String("policy-uri", "", "`uri` of the privacy policy, shown on sign-in pages; \"\" for none")
}

func setPages(cmd *cobra.Command, c *idp.Client) {
	cli.Set(cmd, "name", &c.Name)
	cli.Set(cmd, "brand-color", &c.BrandColor)
	cli.Set(cmd, "tos-uri", &c.TermsURI)
	cli.Set(cmd, "policy-uri", &c.PolicyURI)
}

// addLogoutFlags adds the flags for the redirect URIs of logins and logouts.
func addLogoutFlags(f *pflag.FlagSet) {
	f.StringArray("redirect-uri", nil, "allowed redirect `uri` after login; repeatable")
	f.StringArray("post-logout-redirect-uri", nil, "allowed redirect `uri` after logout; repeatable")
	f.String("backchannel-logout-uri", "",
		"back-channel logout `uri`: receives a POST when a login that holds this client's tokens ends; \"\" for none")
	f.Bool("backchannel-logout-session-required", false,
		"the client needs the sid in logout tokens, which always contain it")
	f.String("initiate-login-uri", "", "`uri` at the client that starts a login, linked on account pages; "+
		"\"\" for none")
	f.String("frontchannel-logout-uri", "", "front-channel logout `uri`: the page after a logout loads it in a frame, "+
		"so that the app ends its session in the same browser; \"\" for none")
	f.Bool("frontchannel-logout-session-required", false,
		"the client needs iss and sid in these requests, which always contain them")
}

func setLogout(cmd *cobra.Command, c *idp.Client) {
	cli.SetTexts(cmd, "redirect-uri", &c.RedirectURIs)
	cli.SetTexts(cmd, "post-logout-redirect-uri", &c.LogoutURIs)
	cli.Set(cmd, "backchannel-logout-uri", &c.BackchannelLogoutURI)
	cli.SetBool(cmd, "backchannel-logout-session-required", &c.BackchannelLogoutSession)
	cli.Set(cmd, "initiate-login-uri", &c.InitiateLoginURI)
	cli.Set(cmd, "frontchannel-logout-uri", &c.FrontchannelLogoutURI)
	cli.SetBool(cmd, "frontchannel-logout-session-required", &c.FrontchannelLogoutSession)
}

// addRequestFlags adds the flags for a client's authentication, grants and scopes.
func addRequestFlags(f *pflag.FlagSet) {
	f.Bool("first-party", false, "the client belongs to the operator: people are not asked for consent")
	f.String("auth-method", "", "authentication `method`: none, client_secret_post, client_secret_basic, "+
		"private_key_jwt, tls_client_auth or self_signed_tls_client_auth (default by type)")
	f.String("jwks", "", "`file` with the public keys (JWKS) that verify the client's signatures, or with its "+
		"certificate (x5c)")
	f.String("jwks-uri", "", "`uri` of public keys instead of a file; they are read again when they change")
	f.StringSlice("grant", nil, "allowed `grant`: authorization_code, refresh_token, client_credentials, "+
		"device_code, or implicit for response types with tokens; repeatable (default by type)")
	f.StringSlice("response-type", nil, "allowed response `type`: "+strings.Join(idp.ResponseTypes(), ", ")+
		"; repeatable (default code)")
	f.StringSlice("scope", nil, "allowed `scope`; repeatable: "+strings.Join(idp.Scopes(), " "))
	f.String("pkce", "", "`rule` for PKCE: required or optional (default required)")
	f.String("profile", "", "`profile` of requests: default, mobile-legacy or fapi2 (default default)")
}

func setRequests(cmd *cobra.Command, c *idp.Client) error {
	cli.SetBool(cmd, "first-party", &c.FirstParty)
	cli.Set(cmd, "auth-method", &c.AuthMethod)
	cli.Set(cmd, "profile", &c.Profile)
	cli.SetTexts(cmd, "grant", &c.Grants)
	cli.SetTexts(cmd, "response-type", &c.ResponseTypes)
	cli.SetTexts(cmd, "scope", &c.Scopes)
	return errors.Join(setKeys(cmd, c), setPKCE(cmd, c))
}

// addSecurityFlags adds the flags that control how a client protects its authorization requests and
// responses.
func addSecurityFlags(f *pflag.FlagSet) {
	f.Bool("require-pushed-authorization-requests", false,
		"the client must push its authorization requests to /oauth/par (RFC 9126)")
	f.Bool("require-signed-request-object", false,
		"the client must sign its authorization requests (RFC 9101)")
	f.String("request-object-signing-alg", "", "`algorithm` that signs its request objects: "+
		strings.Join(idp.AssertionAlgorithms(), ", ")+" (default: any of them)")
	f.StringArray("request-uri", nil, "`uri` of a request object that may be fetched; repeatable")
	f.String("authorization-signed-response-alg", "",
		"`algorithm` that signs responses with response_mode=jwt (JARM) (default: that of ID tokens)")
	f.Bool("dpop-bound-access-tokens", false, "the client's tokens are bound to a key (DPoP, RFC 9449)")
	f.Bool("tls-client-certificate-bound-access-tokens", false,
		"the client's tokens are bound to its certificate (mutual TLS, RFC 8705)")
	f.String("tls-client-auth-subject-dn", "",
		"with tls_client_auth: `name` of its certificate's subject, such as CN=app,O=Acme")
	f.String("tls-client-auth-san-dns", "", "instead: DNS `name` in its certificate")
	f.String("tls-client-auth-san-uri", "", "instead: `uri` in its certificate")
	f.String("tls-client-auth-san-ip", "", "instead: IP `address` in its certificate")
	f.String("tls-client-auth-san-email", "", "instead: email `address` in its certificate")
}

func setSecurity(cmd *cobra.Command, c *idp.Client) {
	cli.SetBool(cmd, "require-pushed-authorization-requests", &c.RequirePushed)
	cli.SetBool(cmd, "require-signed-request-object", &c.RequireObject)
	cli.Set(cmd, "request-object-signing-alg", &c.RequestObjectAlg)
	cli.SetTexts(cmd, "request-uri", &c.RequestURIs)
	cli.Set(cmd, "authorization-signed-response-alg", &c.ResponseAlg)
	cli.SetBool(cmd, "dpop-bound-access-tokens", &c.DPoPBound)
	cli.SetBool(cmd, "tls-client-certificate-bound-access-tokens", &c.CertificateBound)
	cli.Set(cmd, "tls-client-auth-subject-dn", &c.CertificateSubject.DN)
	cli.Set(cmd, "tls-client-auth-san-dns", &c.CertificateSubject.DNS)
	cli.Set(cmd, "tls-client-auth-san-uri", &c.CertificateSubject.URI)
	cli.Set(cmd, "tls-client-auth-san-ip", &c.CertificateSubject.IP)
	cli.Set(cmd, "tls-client-auth-san-email", &c.CertificateSubject.Email)
}

// addTokenFlags adds the flags for a client's tokens and for the subjects in them.
func addTokenFlags(f *pflag.FlagSet) {
	f.String("access-token", "", "`kind` of access tokens: fabric or jwt (default by type)")
	f.String("id-token-alg", "", "`algorithm` that signs ID tokens: RS256, ES256, PS256 or EdDSA (default RS256)")
	f.String("userinfo-signed-response-alg", "",
		"`algorithm` that signs userinfo: RS256, ES256, PS256 or EdDSA (default: plain JSON)")
	f.StringArray("resource", nil, "`uri` of a service that tokens may be requested for (RFC 8707); repeatable")
	f.String("acr", "", "`class` that each login must have: 1, 2 for two factors, or any (default any)")
	f.String("subject-type", "", "`kind` of subjects: public, or pairwise, one for each sector (default public)")
	f.String("sector-identifier-uri", "",
		"`uri` of the sector's list of redirect URIs, if they have several hosts; changing it changes all subjects")
}

func setTokens(cmd *cobra.Command, c *idp.Client) {
	cli.Set(cmd, "access-token", &c.AccessToken)
	cli.Set(cmd, "id-token-alg", (*keys.Use)(&c.IDTokenAlg))
	cli.Set(cmd, "userinfo-signed-response-alg", &c.UserinfoAlg)
	cli.SetTexts(cmd, "resource", &c.Resources)
	cli.Set(cmd, "acr", &c.RequireACR)
	if c.RequireACR == "any" {
		c.RequireACR = ""
	}
	cli.Set(cmd, "subject-type", &c.SubjectType)
	cli.Set(cmd, "sector-identifier-uri", &c.SectorURI)
}

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

// shortGrants returns the names that flags and tables use for grants. JSON uses their full names.
func shortGrants(grants []string) []string {
	short := slices.Clone(grants)
	for i, g := range short {
		if g == idp.GrantDevice {
			short[i] = idp.ShortDevice
		}
	}
	return short
}

// flagLogos returns the logos in the files named by --logo and --dark-logo. An empty flag removes
// the logo.
func flagLogos(cmd *cobra.Command) (brand.Logos, error) {
	logos := make(brand.Logos)
	for _, theme := range brand.Themes {
		flag := strings.ReplaceAll(theme.Param(), "_", "-")
		name := cli.Text(cmd, flag)
		if name == nil {
			continue
		}
		if *name == "" {
			logos[theme] = brand.Logo{}
			continue
		}

		picture, err := os.ReadFile(*name)
		if err != nil {
			return nil, cli.Usagef("--%s: %v", flag, err)
		}
		logos[theme], err = brand.MakeLogo(cmd.Context(), theme.Param(), picture)
		if err != nil {
			return nil, err
		}
	}
	return logos, nil
}

// maxKeyFile is the maximum size of a file of public keys.
const maxKeyFile = 1 << 20

// setKeys copies --jwks and --jwks-uri to a client. A new value of one removes the other.
func setKeys(cmd *cobra.Command, c *idp.Client) error {
	if file := cli.Text(cmd, "jwks"); file != nil {
		set, err := readKeys(*file)
		if err != nil {
			return err
		}
		c.JWKS, c.JWKSURI = set, ""
	}
	if uri := cli.Text(cmd, "jwks-uri"); uri != nil {
		c.JWKSURI = *uri
		if *uri != "" && !cmd.Flags().Changed("jwks") {
			c.JWKS = nil
		}
	}
	return nil
}

// readKeys returns the key set of a file as compact JSON, or nil if the name is empty.
func readKeys(file string) (json.RawMessage, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, cli.Usagef("--jwks: %v", err)
	}
	if info.Size() > maxKeyFile {
		return nil, cli.Usagef("--jwks: %s is too large for a key set", file)
	}

	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usagef("--jwks: %v", err)
	}

	var set bytes.Buffer
	if json.Compact(&set, raw) != nil {
		return nil, cli.Usagef("--jwks: %s is not JSON; it must be a JWKS, {\"keys\": [...]}", file)
	}
	return set.Bytes(), nil
}

// formatKeys returns the URI of a client's keys, or the number of keys if they are stored.
func formatKeys(c client) string {
	if c.JWKSURI != "" {
		return c.JWKSURI
	}
	var set struct{ Keys []json.RawMessage }
	if json.Unmarshal(c.JWKS, &set) != nil {
		return ""
	}
	return cli.Plural(len(set.Keys), "key")
}
