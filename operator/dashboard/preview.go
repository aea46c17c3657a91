package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/brand"
	messages "github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// A preview shows the login page with a given branding, in frames.
type preview struct {
	Page     string // URL of the preview, to which each frame adds its theme
	Real     string // URL of the actual login page
	Verdicts []reading
	// Documents holds the page for each theme if the logo is not saved yet. Otherwise it is nil.
	Documents map[string]string
}

// A reading describes how legible a color is in one theme.
type reading struct{ Ground, Text, Kind string }

// readingsOf describes how legible a color is on light and on dark pages.
func readingsOf(c brand.Color) []reading {
	describe := func(ground string, contrast float64, shown brand.Color, change string) reading {
		ratio := fmt.Sprintf("%.1f", contrast)
		if shown == c {
			return reading{ground, messages.Textf("Contrast %s to 1: readable, shown unchanged.", ratio), "good"}
		}
		return reading{ground, messages.Textf(change, ratio, shown), "warn"}
	}
	return []reading{
		describe("Light pages", brand.ReadOnLight(c), brand.OnLight(c),
			"Contrast %s to 1, below the 4.5 that text needs: shown darker, as %s."),
		describe("Dark pages", brand.ReadOnDark(c), brand.OnDark(c),
			"Contrast %s to 1, below the 4.5 that text needs: shown lighter, as %s."),
	}
}

// showPreview serves GET /dashboard/projects/{project}/branding/preview. It shows an inert copy of
// the login page with the branding in the query.
func (a *brandPages) showPreview(v *visit) error { return a.signInPage(v, nil) }

// showClientPreview serves GET /dashboard/projects/{project}/clients/{id}/branding/preview.
func (a *brandPages) showClientPreview(v *visit) error {
	c, err := a.clients.client(v)
	if err != nil {
		return err
	}
	return a.signInPage(v, &c)
}

// samples returns the login page in both themes, with the values in q and unsaved logos.
func (a *brandPages) samples(v *visit, c *idp.Client, q url.Values, logos []logoField) (map[string]string, error) {
	page, view, err := a.sample(v, c, q)
	if err != nil {
		return nil, err
	}

	var own []templates.Picture // the first is for light pages unless there is only one
	for _, f := range logos {
		if l := f.shown(); l != nil {
			own = append(own, l.picture())
		}
	}

	if len(own) > 0 {
		view.Brand.Logo = own[0]
		view.Brand.DarkLogo = templates.Picture{}
	}
	if len(own) > 1 {
		view.Brand.DarkLogo = own[1]
	}

	all := make(map[string]string)
	for _, view.Theme = range []string{"light", "dark"} {
		if all[view.Theme], err = templates.Render(page, view); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a *brandPages) signInPage(v *visit, c *idp.Client) error {
	page, view, err := a.sample(v, c, v.r.URL.Query())
	if err != nil {
		return err
	}
	// The page is inert, so that it accepts no passwords even if it is opened directly.
	return templates.Write(v.w, page, templates.Options{View: view, Framer: "'self'", Inert: true})
}

// sample returns the login page with the branding in q.
func (a *brandPages) sample(v *visit, c *idp.Client, q url.Values) (page templates.Login, view templates.View,
	err error) {
	english := messages.English()
	own := idp.Client{ProjectID: v.project.ID}
	page = templates.Login{App: english.Say("your-account"), EmailFocus: true,
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
		return page, view, err
	}
	if c == nil { // the project is the last brand to fall back on
		b = idp.Brand{Logo: b.Logo, DarkLogo: b.DarkLogo}
	}

	view = templates.View{Brand: templates.Brand{
		Name: page.App, Terms: cmp.Or(strings.TrimSpace(q.Get("tos_uri")), b.Terms),
		Privacy: cmp.Or(strings.TrimSpace(q.Get("policy_uri")), b.Privacy),
	}}
	if digits := strings.TrimPrefix(cmp.Or(colorOf(q), b.Color), "#"); digits != "" {
		if _, ok := brand.ParseColor(digits); ok {
			view.Brand.Color = digits
		}
	}
	view.Brand.Logo, view.Brand.DarkLogo = templates.PictureOf(b.Logo), templates.PictureOf(b.DarkLogo)
	if theme := q.Get("theme"); theme == "light" || theme == "dark" {
		view.Theme = theme
	}
	return page, view, nil
}
