package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/palette"
	messages "github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// A preview shows what people see: the page of their sign-in, in frames.
type preview struct {
	Page     string // where it is had; a frame adds its theme
	Real     string // where people see it
	Verdicts []reading
}

// A contrast says how a colour is read.
type reading struct{ Ground, Text, Kind string }

// contrastOf says how a colour is read on both kinds of pages.
func readingsOf(c palette.Color) []reading {
	say := func(ground string, contrast float64, shown palette.Color, how string) reading {
		if shown == c {
			return reading{ground, fmt.Sprintf("%.1f to 1: it is read well and shown as it is.", contrast), "good"}
		}
		return reading{ground, fmt.Sprintf("%.1f to 1, and text needs 4.5: it is shown %s, as %s.", contrast,
			how, shown), "warn"}
	}
	return []reading{
		say("On light pages", palette.ReadOnLight(c), palette.OnLight(c), "darker"),
		say("On dark pages", palette.ReadOnDark(c), palette.OnDark(c), "lighter"),
	}
}

// previewBranding serves POST /dashboard/projects/{project}/branding/preview: the form again,
// with what comes of it. Nothing is changed.
func (a *brandPages) previewBranding(v *visit) error { return a.brandPage(v, http.StatusOK, nil, nil) }

// previewClientBranding serves POST /dashboard/projects/{project}/clients/{id}/branding/preview.
func (a *brandPages) previewClientBranding(v *visit) error {
	c, err := a.clients.client(v)
	if err != nil {
		return err
	}
	return a.brandPage(v, http.StatusOK, &c, nil)
}

// showPreview serves GET /dashboard/projects/{project}/branding/preview: the page on which
// people sign in, as it would be with what is in the query. Nobody signs in there.
func (a *brandPages) showPreview(v *visit) error { return a.signInPage(v, nil) }

// showClientPreview serves GET /dashboard/projects/{project}/clients/{id}/branding/preview.
func (a *brandPages) showClientPreview(v *visit) error {
	c, err := a.clients.client(v)
	if err != nil {
		return err
	}
	return a.signInPage(v, &c)
}

func (a *brandPages) signInPage(v *visit, c *idp.Client) error {
	q, say := v.r.URL.Query(), messages.English()
	own := idp.Client{ProjectID: v.project.ID}
	page := templates.Login{App: say.Say("your-account"), EmailFocus: true,
		Register: v.project.Registration == fabric.RegistrationOpen}
	if c != nil {
		own = *c
		first := idp.AuthRequest{}
		if len(c.RedirectURIs) > 0 {
			first.RedirectURI = c.RedirectURIs[0]
		}
		page.Host = first.Host()
		page.App = cmp.Or(strings.TrimSpace(q.Get("name")), page.Host)
	}
	own.BrandColor, own.TermsURI, own.PolicyURI = "", "", ""
	b, err := a.Clients.Clients.Brand(v.r.Context(), own)
	if err != nil {
		return err
	}
	if c == nil { // what is empty in the form of the project is empty
		b = idp.Brand{Logo: b.Logo}
	}
	view := templates.View{Brand: templates.Brand{
		Name: page.App, Terms: cmp.Or(strings.TrimSpace(q.Get("tos_uri")), b.Terms),
		Privacy: cmp.Or(strings.TrimSpace(q.Get("policy_uri")), b.Privacy),
	}}
	if digits := strings.TrimPrefix(cmp.Or(colorOf(q), b.Color), "#"); digits != "" {
		if _, ok := palette.Parse(digits); ok {
			view.Brand.Color = digits
		}
	}
	if shown, ok := logo.Parse(b.Logo); ok {
		view.Brand.Logo = templates.Picture{URL: "/brand/logo/" + shown.Name + ".png", Wide: shown.Wide,
			High: shown.High, Plate: shown.Plate}
	}
	if theme := q.Get("theme"); theme == "light" || theme == "dark" {
		view.Theme = theme
	}
	return templates.Write(v.w, page, templates.Options{View: view, Framer: "'self'",
		Inert: true}) // by an address of its own it would else be a page that takes passwords
}
