package server

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/demo"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/templates"
)

// welcome returns the start page, with links to the pages and APIs that this node serves. The links
// that people need most are first.
func (a *App) welcome(w *words.Words) (home templates.Home) {
	public, auth := a.Where.Public, a.Where.Auth
	link := func(key, url string) templates.Link {
		return templates.Link{Title: w.Say("home." + key), URL: url, Text: w.Say("home." + key + ".why")}
	}

	addPage := func(served bool, key, url string) {
		if served {
			home.Pages = append(home.Pages, link(key, url))
		}
	}
	addEndpoint := func(served bool, key, url string) {
		if served {
			home.Endpoints = append(home.Endpoints, link(key, url))
		}
	}
	addAPI := func(served bool, key, url string) {
		if served {
			endpoint := link(key, url)
			endpoint.API = true
			home.Endpoints = append(home.Endpoints, endpoint)
		}
	}

	addPage(a.Demo != nil && a.Demo.IsShown(), "demo", public+demo.Path)
	addPage(a.serves(config.Dashboard), "dashboard", public+"/dashboard")
	addPage(true, "docs", public+"/docs")
	addEndpoint(a.serves(config.IDP), "discovery", auth+"/.well-known/openid-configuration")
	addEndpoint(a.serves(config.IDP), "jwks", auth+"/oauth/jwks")
	addAPI(a.serves(config.Fabric), "fabric", public+"/api/fabric")
	addAPI(a.serves(config.Relay) && !a.Where.NoWSS, "relay", "wss://"+a.Where.Fabric)
	addAPI(a.serves(config.Recordings), "laml", public+"/api/laml/2010-04-01")
	addEndpoint(true, "sdk", public+sdk.Prefix+"selvage.js")
	return home
}

// links returns links to the pages and APIs that this node serves.
func (a *App) links() []templates.Link {
	home := a.welcome(words.English())
	return slices.Concat(home.Pages, home.Endpoints)
}

// AllowsDemo reports whether the server may create and show a demo.
func (a *App) AllowsDemo() bool {
	return !a.Config.NoDemo && a.Local() && a.Config.Services.All()
}

// printReady prints what this start created, and then two lines with the server's addresses and its
// data directory. It prints secrets only to a terminal. Otherwise it prints the name of the file that
// contains them.
func (s *server) printReady(c created) {
	out := s.config.Stdout
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

	running := s.running()
	fmt.Fprintf(out, "selvage is ready at %s%s\n", s.app.Where.Public, prefixed(", ", running.HTTPS))
	hint := ""
	if terminal {
		hint = "; press Ctrl-C to stop"
	}
	ops := prefixed(", health and metrics at ", running.Ops)
	fmt.Fprintf(out, "data in %s%s%s\n", s.app.Config.Data, ops, hint)
}

// prefixed returns url with a prefix, or "" if url is empty.
func prefixed(prefix, url string) string {
	if url == "" {
		return ""
	}
	return prefix + url
}
