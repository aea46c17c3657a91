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
	// Documents holds the page for each theme if the logo has not been saved yet. Otherwise it is
	// nil.
	Documents map[string]string
}

// A reading describes how legible a color is in one theme.
type reading struct {
	Ground string // "Light pages" or "Dark pages"
	Text   string // a sentence with the contrast, and with the color that is shown instead
	Kind   string // "good" or "warn"
}

// readingsOf describes how legible a color is on light and on dark pages.
func readingsOf(w *messages.Words, c brand.Color) []reading {
	// change is the format of the text if another color is shown: for the contrast and the shown color.
	describe := func(ground string, contrast float64, shown brand.Color, change string) reading {
		ratio := w.Number(fmt.Sprintf("%.1f", contrast))
		if shown == c {
			text := messages.Textf("Contrast %s to 1: readable, shown unchanged.", ratio)
			return reading{Ground: ground, Text: text, Kind: "good"}
		}
		return reading{Ground: ground, Text: messages.Textf(change, ratio, shown), Kind: "warn"}
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
func (a *brandPages) showPreview(v *visit) error { return a.writePreview(v, nil) }

// showClientPreview serves GET /dashboard/projects/{project}/clients/{id}/branding/preview.
func (a *brandPages) showClientPreview(v *visit) error {
	c, err := a.clients.client(v)
	if err != nil {
		return err
	}
	return a.writePreview(v, &c)
}

// renderBothThemes returns the login page for each theme, with the branding in q and with the logos
// that have not been saved yet.
func (a *brandPages) renderBothThemes(
	v *visit, c *idp.Client, q url.Values, logos []logoField,
) (map[string]string, error) {
	page, view, err := a.sampleLogin(v, c, q)
	if err != nil {
		return nil, err
	}

	var unsaved []templates.Picture // one for both themes, or one for light and one for dark pages
	for _, f := range logos {
		if l := f.shown(); l != nil {
			unsaved = append(unsaved, l.picture())
		}
	}

	if len(unsaved) > 0 {
		view.Brand.Logo = unsaved[0]
		view.Brand.DarkLogo = templates.Picture{}
	}
	if len(unsaved) > 1 {
		view.Brand.DarkLogo = unsaved[1]
	}

	documents := make(map[string]string)
	for _, theme := range []string{"light", "dark"} {
		view.Theme = theme
		documents[theme], err = templates.Render(page, view)
		if err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// writePreview responds with the login page and the branding in the query.
func (a *brandPages) writePreview(v *visit, c *idp.Client) error {
	page, view, err := a.sampleLogin(v, c, v.r.URL.Query())
	if err != nil {
		return err
	}
	// The page is inert, so that it accepts no passwords even if it is opened directly.
	return templates.Write(v.w, page, templates.Options{View: view, Framer: "'self'", Inert: true})
}

// sampleLogin returns the login page of a client, or of the project if c is nil, with the branding
// in q. For values that q lacks, it uses the fallback values of the branding.
func (a *brandPages) sampleLogin(
	v *visit, c *idp.Client, q url.Values,
) (page templates.Login, view templates.View, err error) {
	english := messages.English()
	client := idp.Client{ProjectID: v.project.ID}
	page = templates.Login{
		App:        english.Say("your-account"),
		EmailFocus: true,
		Register:   v.project.Registration == fabric.RegistrationOpen,
	}
	if c != nil {
		client = *c
		page.Host = firstHost(c.RedirectURIs)
		page.App = cmp.Or(strings.TrimSpace(q.Get("name")), page.Host)
	}

	// The query replaces these settings of the client. If a value in the query is empty, the
	// project's value is used.
	client.BrandColor, client.TermsURI, client.PolicyURI = "", "", ""
	b, err := a.Clients.Clients.Brand(v.r.Context(), client)
	if err != nil {
		return page, view, err
	}
	if c == nil { // the query holds the project's own branding, which has no fallback
		b = idp.Brand{Logo: b.Logo, DarkLogo: b.DarkLogo}
	}

	view.Brand = templates.Brand{
		Name:     page.App,
		Terms:    cmp.Or(strings.TrimSpace(q.Get("tos_uri")), b.Terms),
		Privacy:  cmp.Or(strings.TrimSpace(q.Get("policy_uri")), b.Privacy),
		Logo:     templates.PictureOf(b.Logo),
		DarkLogo: templates.PictureOf(b.DarkLogo),
	}
	if digits := strings.TrimPrefix(cmp.Or(colorOf(q), b.Color), "#"); digits != "" {
		if _, ok := brand.ParseColor(digits); ok {
			view.Brand.Color = digits
		}
	}
	if theme := q.Get("theme"); theme == "light" || theme == "dark" {
		view.Theme = theme
	}
	return page, view, nil
}

// firstHost returns the host of the first redirect URI, as login pages show it, or "" if there is none.
func firstHost(redirectURIs []string) string {
	if len(redirectURIs) == 0 {
		return ""
	}
	return idp.AuthRequest{RedirectURI: redirectURIs[0]}.Host()
}
