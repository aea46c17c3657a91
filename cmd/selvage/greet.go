package main

import (
	"fmt"
	"path/filepath"

	"github.com/selvage/selvage/internal/config"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/sdk"
)

// A link is something that is mounted: a page, or an API that is no use to
// open in a browser.
type link struct {
	title, url, text string
	api              bool
}

// links lists what is mounted, what people open first.
func (a *app) links() []link {
	var all []link
	add := func(service string, l link) {
		if a.serves(service) {
			all = append(all, l)
		}
	}
	if a.demo != nil {
		all = append(all, link{"Demo", a.where.Public + demoPath, "an app in seven steps, to click through", false})
	}
	add(config.Dashboard, link{"Dashboard", a.where.Public + "/dashboard", "where operators see and change all this", false})
	all = append(all, link{"Documentation", a.where.Public + "/docs", "guides, and every operation with lines to paste", false})
	add(config.IDP, link{"Discovery", a.where.Auth + "/.well-known/openid-configuration", "how OpenID Connect clients find their way", false})
	add(config.IDP, link{"Signing keys", a.where.Auth + "/oauth/jwks", "what verifies ID tokens and JWT access tokens", false})
	add(config.Fabric, link{"Fabric API", a.where.Public + "/api/fabric", "subscribers, tokens and addresses, for backends and apps", true})
	if !a.where.NoWSS {
		add(config.Relay, link{"Relay", "wss://" + a.where.Fabric, "the WebSocket that browser SDKs open", true})
	}
	add(config.Recordings, link{"Recordings API", a.where.Public + "/api/laml/2010-04-01", "recordings, as LaML clients speak", true})
	return append(all, link{"Browser SDK", a.where.Public + sdk.Prefix + "selvage.js", "a script to include in an app that people sign in to", false})
}

// greet tells that the server is ready: two lines, and on the first start what
// the demo is, to a terminal alone.
func (s *server) greet(c *cli, first, setup string) {
	r := s.running()
	if first != "" && isTerminal(c.stdout) {
		fmt.Fprintf(c.stdout, "\n%s\n", first)
	} else if first != "" {
		fmt.Fprintf(c.stdout, "a demo project was made; its ids and secrets are in %s\n", filepath.Join(s.app.config.Data, firstRunFile))
	}
	if setup != "" && isTerminal(c.stdout) {
		fmt.Fprintf(c.stdout, "there is no operator yet; who opens this within a day is the first one, an owner:\n  %s\n", setup)
	} else if setup != "" {
		fmt.Fprintf(c.stdout, "there is no operator yet; the link for the first one is in %s\n", filepath.Join(s.app.config.Data, setupFile))
	}
	fmt.Fprintf(c.stdout, "selvage is ready at %s%s\n", s.app.where.Public, also(r.HTTPS, ", "))
	stops := ""
	if isTerminal(c.stdout) {
		stops = "; Ctrl-C stops" // and not in the journal of systemd
	}
	fmt.Fprintf(c.stdout, "data in %s%s%s\n", s.app.config.Data, also(r.Ops, ", health and metrics at "), stops)
}

func also(url, before string) string {
	if url == "" {
		return ""
	}
	return before + url
}

// notFoundf is an error of something that is not there.
func notFoundf(format string, args ...any) error {
	return problem.New(problem.NotFound, "not_found", format, args...)
}
