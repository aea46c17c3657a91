package dashboard

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/palette"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// A brandPage is how a project, or one of its clients, is shown to people.
type brandPage struct {
	Base, Action, Back, BackTo, Title string
	Client                            bool
	Name                              string
	Form                              form
	Logo                              *shownLogo // its own
	Preview                           preview
	MayChange                         bool
}

// A shownLogo is a logo on a page, with its bytes: the address under which people fetch it
// may be another host.
type shownLogo struct {
	logo.Shown
	URL template.URL
}

// A preview shows what people see.
type preview struct {
	Name, Sheet    string
	Logo           *shownLogo
	Terms, Privacy string
	Verdicts       []verdict
}

// A verdict says how a colour is read.
type verdict struct{ Ground, Text, Kind string }

// logoOf gives a logo with its bytes; nil where there is none.
func (a *API) logoOf(v *visit, name string) (*shownLogo, error) {
	shown, ok := logo.Parse(name)
	if !ok {
		return nil, nil
	}
	body, err := a.Fabric.FindLogo(v.r.Context(), name)
	if errors.Is(err, problem.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &shownLogo{shown, template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(body))}, nil // base64 of our own picture
}

// showBranding serves GET /dashboard/projects/{project}/branding.
func (a *API) showBranding(v *visit) error { return a.brandPage(v, http.StatusOK, nil, nil) }

// showClientBranding serves GET /dashboard/projects/{project}/clients/{id}/branding.
func (a *API) showClientBranding(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	return a.brandPage(v, http.StatusOK, &c, nil)
}

// said gives a field of the form: what was typed, or is looked at, else what is kept.
func (v *visit) said(name, kept string) string {
	if v.form.Has(name) {
		return v.form.Get(name)
	}
	if q := v.r.URL.Query(); v.r.Method == http.MethodGet && q.Has(name) {
		return q.Get(name)
	}
	return kept
}

// brandPage shows the form and what comes of it; c is nil for the project itself.
func (a *API) brandPage(v *visit, code int, c *idp.Client, wrong error) error {
	project := v.project
	p := brandPage{Base: v.base(), Action: v.base() + "/branding", Title: "Branding", Name: project.Name, MayChange: v.mayIn(operator.Write)}
	own := idp.Brand{Color: project.Color, Logo: project.Logo, Terms: project.Terms, Privacy: project.Privacy}
	beside := "selvage's colour"
	if c != nil {
		row := v.clientRow(*c)
		p.Client, p.Action, p.Back, p.BackTo, p.Title, p.Name, beside = true, row.URL+"/branding", row.URL, row.Title, "Branding of "+row.Title, c.Name, "the project's colour"
		own = idp.Brand{Color: c.BrandColor, Logo: c.Logo, Terms: c.TermsURI, Privacy: c.PolicyURI}
	}
	name, color := v.said("name", p.Name), strings.ToLower(strings.TrimSpace(v.said("color", own.Color)))
	terms, privacy := strings.TrimSpace(v.said("tos_uri", own.Terms)), strings.TrimSpace(v.said("policy_uri", own.Privacy))
	p.Form.Inputs = []input{
		{Kind: "text", Type: "text", Name: "name", Label: "Name", Hint: "People see it where they sign in" + map[bool]string{true: ".", false: " to no app in particular, and in mails."}[c != nil], Length: 100, Value: name},
		{Kind: "text", Type: "text", Name: "color", Label: "Colour", Hint: "Of buttons and links: # and six hexadecimal digits, such as #2f4b9b. Leave it empty for " + beside + ".", Length: 7, Value: color, Example: "#2f4b9b"},
		{Kind: "text", Type: "url", Name: "tos_uri", Label: "Terms", Hint: "Where they are; linked at the foot of sign-in.", Length: 2000, Value: terms},
		{Kind: "text", Type: "url", Name: "policy_uri", Label: "Privacy policy", Length: 2000, Value: privacy},
	}
	if wrong != nil && !p.Form.blame(renamed(wrong)) {
		return wrong
	}
	var err error
	if p.Logo, err = a.logoOf(v, own.Logo); err != nil {
		return err
	}
	p.Preview = preview{Name: name, Logo: p.Logo, Terms: terms, Privacy: privacy}
	if c != nil && p.Logo == nil {
		if p.Preview.Logo, err = a.logoOf(v, project.Logo); err != nil {
			return err
		}
	}
	if c != nil && color == "" {
		color = project.Color
	}
	if digits := strings.TrimPrefix(color, "#"); digits != "" {
		if chosen, ok := palette.Parse(digits); ok {
			p.Preview.Sheet = v.base() + "/branding/preview/" + digits + ".css"
			p.Preview.Verdicts = verdictsOf(chosen)
		}
	}
	return a.pageWith(v, templates.Options{Status: code, Connect: []string{"'self'"}}, p.Title, "branding", p)
}

// renamed gives what is wrong by the names that the form has.
func renamed(err error) error {
	var all []error
	for _, p := range problem.All(err) {
		q := *p
		if q.Param == "brand_color" {
			q.Param, q.Message = "color", strings.ReplaceAll(q.Message, "brand_color", "the colour")
		}
		q.Message = strings.NewReplacer("tos_uri", "the address", "policy_uri", "the address", "color must", "the colour must").Replace(q.Message)
		all = append(all, &q)
	}
	if all == nil {
		return err
	}
	return errors.Join(all...)
}

// verdictsOf says how a colour is read on both kinds of pages.
func verdictsOf(c palette.Color) []verdict {
	say := func(ground string, contrast float64, shown palette.Color, how string) verdict {
		if shown == c {
			return verdict{ground, fmt.Sprintf("%.1f to 1: it is read well and shown as it is.", contrast), "good"}
		}
		return verdict{ground, fmt.Sprintf("%.1f to 1, and text needs 4.5: it is shown %s, as %s.", contrast, how, shown), "warn"}
	}
	return []verdict{
		say("On light pages", palette.ReadOnLight(c), palette.OnLight(c), "darker"), say("On dark pages", palette.ReadOnDark(c), palette.OnDark(c), "lighter"),
	}
}

// previewSheet serves GET /dashboard/projects/{project}/branding/preview/{file}: the colours
// of the preview.
func (a *API) previewSheet(v *visit) error {
	digits, isSheet := strings.CutSuffix(v.r.PathValue("file"), ".css")
	c, ok := palette.Parse(digits)
	if !isSheet || !ok {
		return problem.NoSuch("colour")
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/css; charset=utf-8")
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(v.w, strings.Replace(palette.Sheet(c), ":root", ".preview", 1)) // the browser may have gone
	return nil
}

// saveBranding serves POST /dashboard/projects/{project}/branding.
func (a *API) saveBranding(v *visit) error {
	made, given, err := v.typedLogo()
	text := func(name string) *string { s := strings.TrimSpace(v.form.Get(name)); return &s }
	change := fabric.ProjectChange{Name: text("name"), Color: text("color"), Terms: text("tos_uri"), Privacy: text("policy_uri")}
	*change.Color = strings.ToLower(*change.Color)
	if wrong := errors.Join(change.Check(), err); wrong != nil {
		return a.brandPage(v, http.StatusUnprocessableEntity, nil, wrong)
	}
	if _, err := a.Fabric.UpdateProject(v.r.Context(), v.project.ID, change); err != nil {
		return err
	}
	if given {
		if _, err := a.Fabric.SetLogo(v.r.Context(), v.project.ID, made); err != nil {
			return err
		}
	}
	return v.redirect(v.base() + "/branding?done=changed")
}

// saveClientBranding serves POST /dashboard/projects/{project}/clients/{id}/branding.
func (a *API) saveClientBranding(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	made, given, wrong := v.typedLogo()
	text := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	if wrong == nil {
		wrong = a.Clients.ChangeClient(v.r.Context(), c.ID, func(c *idp.Client) {
			c.Name, c.BrandColor, c.TermsURI, c.PolicyURI = text("name"), strings.ToLower(text("color")), text("tos_uri"), text("policy_uri")
		})
	}
	if wrong != nil {
		return a.brandPage(v, http.StatusUnprocessableEntity, &c, wrong)
	}
	if given {
		if _, err := a.Clients.SetLogo(v.r.Context(), c.ID, made); err != nil {
			return err
		}
	}
	return v.redirect(v.clientRow(c).URL + "/branding?done=changed")
}

// typedLogo makes the logo of the form's file; given is whether the logo is to be changed.
// What is no picture is told before anything is changed.
func (v *visit) typedLogo() (l logo.Logo, given bool, err error) {
	if v.file != nil && v.file.FileName() != "" {
		raw, err := io.ReadAll(io.LimitReader(v.file, logo.MaxUpload+1))
		if err != nil {
			return l, false, problem.New(problem.Malformed, "file", "the file did not arrive whole")
		}
		_, _ = io.Copy(io.Discard, v.file) // a browser shows no answer before all is sent
		if len(raw) > 0 {
			l, err = logo.Make("logo", raw)
			return l, err == nil, err
		}
	}
	return l, v.form.Get("remove") != "", nil
}
