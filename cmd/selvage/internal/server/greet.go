package server

import (
	"fmt"
	"path/filepath"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/sdk"
)

// A link is something that is mounted: a page, or an API that is no use to
// open in a browser.
type link struct {
	title, url, text string
	api              bool
}

// links lists what is mounted, what people open first.
func (a *App) links() []link {
	var all []link
	add := func(service string, l link) {
		if a.serves(service) {
			all = append(all, l)
		}
	}
	if a.demo != nil {
		all = append(all, link{"Demo", a.Where.Public + demoPath, "an app in seven steps, to click through", false})
	}
	add(config.Dashboard, link{"Dashboard", a.Where.Public + "/dashboard",
		"where operators see and change all this", false})
	all = append(all, link{"Documentation", a.Where.Public + "/docs",
		"guides, and every operation with lines to paste", false})
	add(config.IDP, link{"Discovery", a.Where.Auth + "/.well-known/openid-configuration",
		"how OpenID Connect clients find their way", false})
	add(config.IDP, link{"Signing keys", a.Where.Auth + "/oauth/jwks",
		"what verifies ID tokens and JWT access tokens", false})
	add(config.Fabric, link{"Fabric API", a.Where.Public + "/api/fabric",
		"subscribers, tokens and addresses, for backends and apps", true})
	if !a.Where.NoWSS {
		add(config.Relay, link{"Relay", "wss://" + a.Where.Fabric, "the WebSocket that browser SDKs open", true})
	}
	add(config.Recordings, link{"Recordings API", a.Where.Public + "/api/laml/2010-04-01",
		"recordings, as LaML clients speak", true})
	return append(all, link{"Browser SDK", a.Where.Public + sdk.Prefix + "selvage.js",
		"a script to include in an app that people sign in to", false})
}

// greet tells that the server is ready: two lines, and on the first start what
// the demo is, to a terminal alone.
func (s *server) greet(first, setup string) {
	r := s.running()
	if first != "" && console.IsTerminal(s.given.Stdout) {
		fmt.Fprintf(s.given.Stdout, "\n%s\n", first)
	} else if first != "" {
		fmt.Fprintf(s.given.Stdout, "a demo project was made; its ids and secrets are in %s\n",
			filepath.Join(s.app.Config.Data, firstRunFile))
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
