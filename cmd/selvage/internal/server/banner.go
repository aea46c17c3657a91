package server

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/demo"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/templates"
)

// welcome returns the start page, with links to the pages and APIs that this node serves. The links
// that people need most are first.
func (a *App) welcome() (home templates.Home) {
	public, auth := a.Where.Public, a.Where.Auth
	add := func(to *[]templates.Link, served bool, one templates.Link) {
		if served {
			*to = append(*to, one)
		}
	}

	visit := func(served bool, title, url, text string) {
		add(&home.Pages, served, templates.Link{Title: title, URL: url, Text: text})
	}
	page := func(served bool, title, url, text string) {
		add(&home.Endpoints, served, templates.Link{Title: title, URL: url, Text: text})
	}

	api := func(served bool, title, url, text string) {
		add(&home.Endpoints, served, templates.Link{Title: title, URL: url, Text: text, API: true})
	}

	visit(a.Demo != nil && a.Demo.IsShown(), "Demo", public+demo.Path, "a sample app to click through, in seven steps")
	visit(a.serves(config.Dashboard), "Dashboard", public+"/dashboard",
		"where operators manage projects, accounts and recordings")
	visit(true, "Documentation", public+"/docs", "guides, and an API reference with commands to copy")
	page(a.serves(config.IDP), "Discovery", auth+"/.well-known/openid-configuration",
		"the configuration that OpenID Connect clients read")
	page(a.serves(config.IDP), "Signing keys", auth+"/oauth/jwks", "keys to verify ID tokens and JWT access tokens")
	api(a.serves(config.Fabric), "Fabric API", public+"/api/fabric",
		"subscribers, tokens and addresses, for backends and apps")
	api(a.serves(config.Relay) && !a.Where.NoWSS, "Relay", "wss://"+a.Where.Fabric,
		"the WebSocket that browser SDKs open")
	api(a.serves(config.Recordings), "Recordings API", public+"/api/laml/2010-04-01", "recordings for LaML clients")
	page(true, "Browser SDK", public+sdk.Prefix+"selvage.js", "a script to include in an app that people sign in to")
	return home
}

// links returns links to the pages and APIs that this node serves.
func (a *App) links() []templates.Link {
	home := a.welcome()
	return slices.Concat(home.Pages, home.Endpoints)
}

// AllowsDemo reports whether the server may create and show a demo.
func (a *App) AllowsDemo() bool {
	return !a.Config.NoDemo && a.Local() && a.Config.Services.All()
}

// printReady prints what this start created, and then two lines that say where the server and its
// data are. It prints secrets only to a terminal. Otherwise it prints the name of the file that
// contains them.
func (s *server) printReady(c created) {
	r, out := s.running(), s.config.Stdout
	terminal := console.IsTerminal(out)
	switch {
	case c.demo != "" && terminal:
		fmt.Fprintf(out, "\n%s\n", c.demo)
	case c.demo != "":
		fmt.Fprintf(out, "created a demo project; its ids and secrets are in %s\n",
			filepath.Join(s.app.Config.Data, demo.TextFile))
	}

	switch {
	case c.setup != "" && terminal:
		fmt.Fprintf(out, "there is no operator yet; open this link within a day to become the first one, "+
			"an owner:\n  %s\n", c.setup)
	case c.setup != "":
		fmt.Fprintf(out, "there is no operator yet; the link for the first one is in %s\n",
			filepath.Join(s.app.Config.Data, setupFile))
	}

	fmt.Fprintf(out, "selvage is ready at %s%s\n", s.app.Where.Public, prefixed(", ", r.HTTPS))
	hint := ""
	if terminal {
		hint = "; press Ctrl-C to stop"
	}
	fmt.Fprintf(out, "data in %s%s%s\n", s.app.Config.Data, prefixed(", health and metrics at ", r.Ops), hint)
}

// prefixed returns url with a prefix, or "" if url is empty.
func prefixed(prefix, url string) string {
	if url == "" {
		return ""
	}
	return prefix + url
}
