package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// addClientFlags gives a command the settings of a client.
func addClientFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("name", "", "the `name` that people see where they sign in")
	f.StringArray("redirect-uri", nil, "a `uri` it may be sent to after a login; any number")
	f.StringArray("post-logout-redirect-uri", nil, "a `uri` it may be sent to after a logout; any number")
	f.Bool("first-party", false, "it belongs to the operator: nobody is asked for consent")
	f.String("auth-method", "", "the `method` it proves itself by: none, client_secret_post or client_secret_basic (default by type)")
	f.StringSlice("grant", nil, "a `grant` it may use: authorization_code, refresh_token or client_credentials; any number (default by type)")
	f.StringSlice("scope", nil, "a `scope` it may ask; any number: "+strings.Join(idp.Scopes(), " "))
	f.String("pkce", "", "the `rule` for PKCE: required or optional (default required)")
	f.String("profile", "", "the `profile` its requests are read by: default or mobile-legacy (default default)")
	f.String("access-token", "", "the `kind` of its access tokens: fabric or jwt (default by type)")
	f.String("id-token-alg", "", "the `algorithm` that signs its ID tokens: RS256 or ES256 (default RS256)")
	for _, name := range []string{"jwks", "jwks-uri", "backchannel-logout-uri", "frontchannel-logout-uri"} {
		f.String(name, "", "not in this version")
		_ = f.MarkHidden(name) // it was defined a line above
	}
	f.SortFlags = false
}

// refused are the settings that are known and not there: in this version none of
// them would have an effect.
var refused = []struct{ flag, value, sentence string }{
	{"jwks", "", "a client proves itself with a secret or not at all; private_key_jwt and its keys are not in this version"},
	{"jwks-uri", "", "a client proves itself with a secret or not at all; private_key_jwt and its keys are not in this version"},
	{"auth-method", "private_key_jwt", "private_key_jwt is not in this version; use client_secret_basic or client_secret_post"},
	{"profile", "fapi2", "the profile fapi2 is not in this version; default is the strictest"},
	{"id-token-alg", "PS256", "PS256 is not in this version; use RS256 or ES256"},
	{"id-token-alg", "EdDSA", "EdDSA is not in this version; use RS256 or ES256"},
	{"grant", "device_code", "the device grant is not in this version; a device with a browser uses authorization_code"},
	{"backchannel-logout-uri", "", "logouts are not delivered to clients in this version; their tokens end within a second"},
	{"frontchannel-logout-uri", "", "logouts are not delivered to clients in this version; their tokens end within a second"},
}

// refuse gives a sentence for each setting that is not there.
func refuse(cmd *cobra.Command) error {
	var errs []error
	for _, r := range refused {
		f := cmd.Flags().Lookup(r.flag)
		given := split(strings.Trim(f.Value.String(), "[]"))
		if f.Changed && (r.value == "" || slices.Contains(given, r.value)) {
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
	setText(cmd, "auth-method", &c.AuthMethod)
	setText(cmd, "profile", &c.Profile)
	setText(cmd, "access-token", &c.AccessToken)
	setText(cmd, "id-token-alg", (*keys.Use)(&c.IDTokenAlg))
	setTexts(cmd, "redirect-uri", &c.RedirectURIs)
	setTexts(cmd, "post-logout-redirect-uri", &c.LogoutURIs)
	setTexts(cmd, "grant", &c.Grants)
	setTexts(cmd, "scope", &c.Scopes)
	if cmd.Flags().Changed("first-party") {
		c.FirstParty, _ = cmd.Flags().GetBool("first-party")
	}
	if v := text(cmd, "pkce"); v != nil {
		if *v != "required" && *v != "optional" {
			return usagef("--pkce: %q is not required or optional", *v)
		}
		c.PKCEOptional = *v == "optional"
	}
	return nil
}

func setText[T ~string](cmd *cobra.Command, flag string, to *T) {
	if v := text(cmd, flag); v != nil {
		*to = T(*v)
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
