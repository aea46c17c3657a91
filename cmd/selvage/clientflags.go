package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/keys"
)

// addClientFlags returns a command the settings of a client.
func addClientFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("name", "", "the `name` that people see where they sign in")
	f.String("brand-color", "", "the `color` of its buttons where people sign in, such as #2f4b9b; \"\" is the project's")
	f.String("logo", "", "a `file` with its logo, PNG, JPEG or WebP, shown where people sign in; \"\" is the project's")
	f.String("tos-uri", "", "the `uri` of its terms, shown where people sign in; \"\" for none")
	f.String("policy-uri", "", "the `uri` of its privacy policy, likewise")
	f.StringArray("redirect-uri", nil, "a `uri` it may be sent to after a login; any number")
	f.StringArray("post-logout-redirect-uri", nil, "a `uri` it may be sent to after a logout; any number")
	f.String("backchannel-logout-uri", "",
		"the `uri` that is told when a login ends which it has got something of, by POST; \"\" ends that")
	f.Bool("backchannel-logout-session-required", false,
		"it wants the sid of the login in each logout token; it is always there")
	f.Bool("first-party", false, "it belongs to the operator: nobody is asked for consent")
	f.String("auth-method", "", "the `method` it proves itself by: none, client_secret_post, client_secret_basic or private_key_jwt (default by type)")
	f.String("jwks", "", "a `file` of its public keys (JWKS), for private_key_jwt")
	f.String("jwks-uri", "", "the `uri` of its public keys instead, which are read again when they change")
	f.StringSlice("grant", nil, "a `grant` it may use: authorization_code, refresh_token, client_credentials or device_code; any number (default by type)")
	f.StringSlice("response-type", nil, "a `type` of answer it may ask for: code or id_token; any number (default code)")
	f.StringSlice("scope", nil, "a `scope` it may ask; any number: "+strings.Join(idp.Scopes(), " "))
	f.String("pkce", "", "the `rule` for PKCE: required or optional (default required)")
	f.String("profile", "", "the `profile` its requests are read by: default or mobile-legacy (default default)")
	f.String("access-token", "", "the `kind` of its access tokens: fabric or jwt (default by type)")
	f.String("id-token-alg", "", "the `algorithm` that signs its ID tokens: RS256, ES256, PS256 or EdDSA (default RS256)")
	f.String("userinfo-signed-response-alg", "",
		"the `algorithm` that signs its userinfo: RS256, ES256, PS256 or EdDSA (default: plain JSON)")
	f.StringArray("resource", nil, "a `uri` of a service that it may ask tokens for (RFC 8707); any number")
	f.String("acr", "", "the `class` that each login for it must have: 1, 2 for two factors, or any (default any)")
	f.String("subject-type", "", "the `kind` of its subjects: public, or pairwise, which only its sector shares (default public)")
	f.String("sector-identifier-uri", "",
		"the `uri` of the sector's list of redirect URIs, where they have not one host; another sector has other subjects")
	for _, name := range []string{"frontchannel-logout-uri"} {
		f.String(name, "", "not in this version")
		_ = f.MarkHidden(name) // it was defined a line above
	}
	f.SortFlags = false
}

// refused are the settings that are known and not there: in this version none of
// them would have an effect.
var refused = []struct{ flag, value, sentence string }{
	{"profile", "fapi2", "the profile fapi2 is not in this version; default is the strictest"},
	{"frontchannel-logout-uri", "", "logouts are not delivered by browsers in this version; use --backchannel-logout-uri"},
}

// refuse returns a sentence for each setting that is not there.
func refuse(cmd *cobra.Command) error {
	var errs []error
	for _, r := range refused {
		f := cmd.Flags().Lookup(r.flag)
		if f.Changed && (r.value == "" || f.Value.String() == r.value) {
			errs = append(errs, usagef("--%s: %s", r.flag, r.sentence))
		}
	}
	return errors.Join(errs...)
}

// clientSettings writes the flags that were given into a client.
func clientSettings(cmd *cobra.Command, c *idp.Client) error {
	if err := refuse(cmd); err != nil {
		return err
	}
	setText(cmd, "name", &c.Name)
	setText(cmd, "brand-color", &c.BrandColor)
	setText(cmd, "tos-uri", &c.TermsURI)
	setText(cmd, "policy-uri", &c.PolicyURI)
	setText(cmd, "auth-method", &c.AuthMethod)
	setText(cmd, "profile", &c.Profile)
	setText(cmd, "access-token", &c.AccessToken)
	setText(cmd, "id-token-alg", (*keys.Use)(&c.IDTokenAlg))
	setTexts(cmd, "redirect-uri", &c.RedirectURIs)
	setTexts(cmd, "post-logout-redirect-uri", &c.LogoutURIs)
	setTexts(cmd, "grant", &c.Grants)
	c.Grants = slices.Clone(c.Grants)
	for i, g := range c.Grants {
		if g == shortDevice {
			c.Grants[i] = idp.GrantDevice
		}
	}
	setTexts(cmd, "response-type", &c.ResponseTypes)
	setTexts(cmd, "scope", &c.Scopes)
	setText(cmd, "backchannel-logout-uri", &c.BackchannelLogoutURI)
	setBool(cmd, "backchannel-logout-session-required", &c.BackchannelLogoutSession)
	setBool(cmd, "first-party", &c.FirstParty)
	setText(cmd, "userinfo-signed-response-alg", &c.UserinfoAlg)
	setTexts(cmd, "resource", &c.Resources)
	setText(cmd, "acr", &c.RequireACR)
	if c.RequireACR == "any" {
		c.RequireACR = ""
	}
	setText(cmd, "subject-type", &c.SubjectType)
	setText(cmd, "sector-identifier-uri", &c.SectorURI)
	if err := setKeys(cmd, c); err != nil {
		return err
	}
	if v := text(cmd, "pkce"); v != nil {
		if *v != "required" && *v != "optional" {
			return usagef("--pkce: %q is not required or optional", *v)
		}
		c.PKCEOptional = *v == "optional"
	}
	return nil
}

// shortDevice is what is typed, and shown in tables, for the URN that is the name of the
// device grant; JSON has the URN.
const shortDevice = "device_code"

// shortGrants returns grants as they are typed.
func shortGrants(grants []string) []string {
	short := slices.Clone(grants)
	for i, g := range short {
		if g == idp.GrantDevice {
			short[i] = shortDevice
		}
	}
	return short
}

// typedLogo makes the logo of --logo's file; given is whether there is the flag, and nothing
// in it takes a logo away. What is no picture is told before anything is changed.
func typedLogo(cmd *cobra.Command) (l logo.Logo, given bool, err error) {
	name := text(cmd, "logo")
	if name == nil || *name == "" {
		return l, name != nil, nil
	}
	raw, err := os.ReadFile(*name)
	if err != nil {
		return l, false, usagef("--logo: %v", err)
	}
	l, err = logo.Make("logo", raw)
	return l, true, err
}

func setText[T ~string](cmd *cobra.Command, flag string, to *T) {
	if v := text(cmd, flag); v != nil {
		*to = T(*v)
	}
}

func setBool(cmd *cobra.Command, flag string, to *bool) {
	if cmd.Flags().Changed(flag) {
		*to, _ = cmd.Flags().GetBool(flag)
	}
}

func setTexts(cmd *cobra.Command, flag string, to *[]string) {
	f := cmd.Flags().Lookup(flag)
	if many, ok := f.Value.(interface{ GetSlice() []string }); ok && f.Changed {
		*to = many.GetSlice()
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func lines(items []string) string { return strings.Join(items, "\n") }
