package oidc_test

import (
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

// TestRegisterRedirects shows which redirect URIs may be registered. Requests must match them
// exactly, so a URI that no browser or app could send is refused.
func TestRegisterRedirects(t *testing.T) {
	w := newWorld(t)
	register := func(uri string) error {
		c := idp.Client{ProjectID: w.project.ID, Type: idp.Native, RedirectURIs: []string{uri}}
		_, _, err := w.idp.Clients.Create(t.Context(), c)
		return err
	}

	for _, uri := range []string{
		"https://rp.example/cb",
		"https://rp.example/cb?tenant=1&x=%22%7B",
		"https://rp.example:8443/a;b/(c)/~d/!$'+,@",
		"http://localhost:3000/cb",
		"http://app.localhost/cb",
		"http://[::1]/cb",
		"com.example.app:/cb",
	} {
		if err := register(uri); err != nil {
			t.Errorf("registering %q: %v, want success", uri, err)
		}
	}

	for uri, want := range map[string]string{
		"http://rp.example/cb":           "must be https",
		"javascript:alert(1)":            "must be https",
		"https://rp.example/cb#x":        "without fragment",
		"https://rp.example/*":           "without fragment, wildcard",
		"https://u:p@rp.example/cb":      "user",
		"/cb":                            "is not an absolute address",
		"https://rp.example/ü":           "is not an absolute address",
		"https://rp.example/\"onload=x":  "characters that a URI must escape as %XX",
		"https://rp.example/<b>":         "characters that a URI must escape as %XX",
		"https://rp.example/cb?{tenant}": "characters that a URI must escape as %XX",
		"https://rp.example/a|b^c`":      "characters that a URI must escape as %XX",
	} {
		if err := register(uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("registering %q: %v, want an error with %q", uri, err, want)
		}
	}
}
