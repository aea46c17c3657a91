package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/keys"
	"github.com/spf13/cobra"
	"os"
	"slices"
	"strings"
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
			errs = append(errs, cli.Usagef("--%s: %s", r.flag, r.sentence))
		}
	}
	return errors.Join(errs...)
}

// clientSettings writes the flags that were given into a client.
func clientSettings(cmd *cobra.Command, c *idp.Client) error {
	if err := refuse(cmd); err != nil {
		return err
	}
	cli.Set(cmd, "name", &c.Name)
	cli.Set(cmd, "brand-color", &c.BrandColor)
	cli.Set(cmd, "tos-uri", &c.TermsURI)
	cli.Set(cmd, "policy-uri", &c.PolicyURI)
	cli.Set(cmd, "auth-method", &c.AuthMethod)
	cli.Set(cmd, "profile", &c.Profile)
	cli.Set(cmd, "access-token", &c.AccessToken)
	cli.Set(cmd, "id-token-alg", (*keys.Use)(&c.IDTokenAlg))
	cli.SetTexts(cmd, "redirect-uri", &c.RedirectURIs)
	cli.SetTexts(cmd, "post-logout-redirect-uri", &c.LogoutURIs)
	cli.SetTexts(cmd, "grant", &c.Grants)
	c.Grants = slices.Clone(c.Grants)
	for i, g := range c.Grants {
		if g == shortDevice {
			c.Grants[i] = idp.GrantDevice
		}
	}
	cli.SetTexts(cmd, "response-type", &c.ResponseTypes)
	cli.SetTexts(cmd, "scope", &c.Scopes)
	cli.Set(cmd, "backchannel-logout-uri", &c.BackchannelLogoutURI)
	cli.SetBool(cmd, "backchannel-logout-session-required", &c.BackchannelLogoutSession)
	cli.SetBool(cmd, "first-party", &c.FirstParty)
	cli.Set(cmd, "userinfo-signed-response-alg", &c.UserinfoAlg)
	cli.SetTexts(cmd, "resource", &c.Resources)
	cli.Set(cmd, "acr", &c.RequireACR)
	if c.RequireACR == "any" {
		c.RequireACR = ""
	}
	cli.Set(cmd, "subject-type", &c.SubjectType)
	cli.Set(cmd, "sector-identifier-uri", &c.SectorURI)
	if err := setKeys(cmd, c); err != nil {
		return err
	}
	if v := cli.Text(cmd, "pkce"); v != nil {
		if *v != "required" && *v != "optional" {
			return cli.Usagef("--pkce: %q is not required or optional", *v)
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
	name := cli.Text(cmd, "logo")
	if name == nil || *name == "" {
		return l, name != nil, nil
	}
	raw, err := os.ReadFile(*name)
	if err != nil {
		return l, false, cli.Usagef("--logo: %v", err)
	}
	l, err = logo.Make("logo", raw)
	return l, true, err
}

// maxKeyFile bounds what is read of a file of keys.
const maxKeyFile = 1 << 20

// setKeys writes the keys that were given into a client. Those by value and those
// by address take each other's place.
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

// readKeys returns the key set of a file as it is kept; "" means none.
func readKeys(file string) (json.RawMessage, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxKeyFile {
		err = fmt.Errorf("%s is too large for a key set", file)
	}
	if err != nil {
		return nil, cli.Usagef("--jwks: %v", err)
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

// keysOf tells where a client's keys are.
func keysOf(c client) string {
	if c.JWKSURI != "" {
		return c.JWKSURI
	}
	var set struct{ Keys []json.RawMessage }
	if json.Unmarshal(c.JWKS, &set) != nil {
		return ""
	}
	return cli.Plural(len(set.Keys), "key")
}
