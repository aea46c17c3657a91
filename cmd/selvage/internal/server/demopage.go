package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/templates"
)

// demoPath is where the demo app is.
const demoPath = "/demo"

// demoFile keeps which client the demo app is.
const demoFile = "demo.json"

// A demoApp is what the demo's page must know of the demo.
type demoApp struct {
	ClientID string `json:"client_id"`
	Email    string `json:"email"`
}

// keepDemo keeps what the page must know, for this start and later ones.
func (a *App) keepDemo(d demo) error {
	a.demo = &demoApp{ClientID: d.spa.ID, Email: d.subscriber.Email}
	text, err := json.Marshal(a.demo)
	if err != nil {
		return fmt.Errorf("writing %s: %w", demoFile, err)
	}
	return datadir.Replace(filepath.Join(a.Config.Data, demoFile), text, 0o600)
}

// openDemo finds what the first start has kept, if it made a demo and this server is
// one that only this machine can reach. The server may have another address by now,
// which the app must be let come back to.
func (a *App) openDemo(ctx context.Context) error {
	d, err := a.readDemo()
	if errors.Is(err, fs.ErrNotExist) || err == nil && (a.Config.NoDemo || !a.Local() || !a.Config.Services.All()) {
		a.demo = nil
		return nil
	}
	if err != nil {
		return err
	}
	c, err := a.IDP.FindClient(ctx, d.ClientID)
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the demo's client: %w", err)
	}
	a.demo = &d
	return a.letBack(ctx, c, a.Where.Public+demoPath)
}

// readDemo reads what is kept of the demo.
func (a *App) readDemo() (d demoApp, err error) {
	text, err := os.ReadFile(filepath.Join(a.Config.Data, demoFile))
	if err != nil {
		return d, fmt.Errorf("reading the demo: %w", err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("reading %s: %w", demoFile, err)
	}
	return d, nil
}

// letBack registers a page with a client, where logins and logouts come back to.
func (a *App) letBack(ctx context.Context, c idp.Client, page string) error {
	if slices.Contains(c.RedirectURIs, page) && slices.Contains(c.LogoutURIs, page) {
		return nil
	}
	err := a.IDP.ChangeClient(ctx, c.ID, func(c *idp.Client) {
		c.RedirectURIs, c.LogoutURIs = with(c.RedirectURIs, page), with(c.LogoutURIs, page)
	})
	if err != nil {
		return fmt.Errorf("registering %s with the demo's client: %w", page, err)
	}
	return nil
}

// with returns a list that has s in it.
func with(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(slices.Clone(list), s)
}

// showDemo serves GET /demo, where there is a demo.
func (a *App) showDemo(w http.ResponseWriter, r *http.Request) {
	if a.demo == nil {
		notFound(w, r)
		return
	}
	d, err := a.readDemo() // which `selvage demo reset` may have made anew
	if err == nil {
		_, err = a.IDP.FindClient(r.Context(), d.ClientID)
	}
	if err != nil {
		notFound(w, r) // the demo's project was deleted
		return
	}
	page := templates.Demo{
		SDK: sdk.Find("selvage.js").URL, Server: a.Where.Public, Issuer: a.Where.Issuer(), FabricHost: a.Where.Fabric,
		Client: d.ClientID, Email: d.Email,
	}
	auth := originOf(a.Where.Auth)
	_, domain, _ := strings.Cut(a.Where.Fabric, ".") // browser SDKs exchange the first label
	_ = templates.Write(w, page, templates.Options{  // it was parsed at the start
		Scripts: true, Media: true, Frames: []string{"'self'", auth},
		Connect: []string{auth, "https://fabric." + domain, "wss://" + a.Where.Fabric},
		Framer:  "'self'", // where the app renews its login in a frame
	})
}

// originOf returns the origin of a URL of ours.
func originOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base // it was parsed at the start
	}
	return u.Scheme + "://" + u.Host
}
