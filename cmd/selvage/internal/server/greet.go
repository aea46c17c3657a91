package server

import (
	"fmt"
	"path/filepath"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/demo"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/templates"
)

// links lists the pages and APIs that are served, in the order in which people need them.
func (a *App) links() []templates.Link {
	var all []templates.Link
	public, auth := a.Where.Public, a.Where.Auth
	page := func(served bool, title, url, text string) {
		if served {
			all = append(all, templates.Link{Title: title, URL: url, Text: text})
		}
	}
	api := func(served bool, title, url, text string) {
		if served {
			all = append(all, templates.Link{Title: title, URL: url, Text: text, API: true})
		}
	}

	page(a.Demo != nil && a.Demo.IsShown(), "Demo", public+demo.Path, "an app in seven steps, to click through")
	page(a.serves(config.Dashboard), "Dashboard", public+"/dashboard", "where operators see and change all this")
	page(true, "Documentation", public+"/docs", "guides, and every operation with commands to paste")
	page(a.serves(config.IDP), "Discovery", auth+"/.well-known/openid-configuration",
		"the configuration that OpenID Connect clients read")
	page(a.serves(config.IDP), "Signing keys", auth+"/oauth/jwks", "keys to verify ID tokens and JWT access tokens")
	api(a.serves(config.Fabric), "Fabric API", public+"/api/fabric",
		"subscribers, tokens and addresses, for backends and apps")
	api(a.serves(config.Relay) && !a.Where.NoWSS, "Relay", "wss://"+a.Where.Fabric,
		"the WebSocket that browser SDKs open")
	api(a.serves(config.Recordings), "Recordings API", public+"/api/laml/2010-04-01", "recordings for LaML clients")
	page(true, "Browser SDK", public+sdk.Prefix+"selvage.js", "a script to include in an app that people sign in to")
	return all
}

// AllowsDemo reports whether the server may create and show a demo.
func (a *App) AllowsDemo() bool {
	return !a.Config.NoDemo && a.Local() && a.Config.Services.All()
}

// greet tells that the server is ready: two lines, and on the first start what
// the demo is, to a terminal alone.
func (s *server) greet(first, setup string) {
	r := s.running()
	if first != "" && console.IsTerminal(s.given.Stdout) {
		fmt.Fprintf(s.given.Stdout, "\n%s\n", first)
	} else if first != "" {
		fmt.Fprintf(s.given.Stdout, "created a demo project; its ids and secrets are in %s\n",
			filepath.Join(s.app.Config.Data, demo.TextFile))
	}
	if setup != "" && console.IsTerminal(s.given.Stdout) {
		fmt.Fprintf(s.given.Stdout, "there is no operator yet; who opens this within a day is the first one, an owner:\n  %s\n", setup)
	} else if setup != "" {
		fmt.Fprintf(s.given.Stdout, "there is no operator yet; the link for the first one is in %s\n",
			filepath.Join(s.app.Config.Data, setupFile))
	}
	fmt.Fprintf(s.given.Stdout, "selvage is ready at %s%s\n", s.app.Where.Public, also(r.HTTPS, ", "))
	stops := ""
	if console.IsTerminal(s.given.Stdout) {
		stops = "; Ctrl-C stops" // and not in the journal of systemd
	}
	fmt.Fprintf(s.given.Stdout, "data in %s%s%s\n", s.app.Config.Data, also(r.Ops, ", health and metrics at "), stops)
}

func also(url, before string) string {
	if url == "" {
		return ""
	}
	return before + url
}
