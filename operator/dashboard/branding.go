package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// brandPages serves the pages that show and change the branding of a project or an OAuth client.
type brandPages struct {
	*site
	clients *clientPages
	Clients *idp.Provider
}

// A brandPage shows the branding of a project or of a client: what people see when they sign in.
type brandPage struct {
	Base      string
	Action    string
	Back      string
	BackTo    string
	Title     string
	Client    bool // whether the branding is that of a client
	Form      form
	Logos     []logoField
	Preview   preview
	MayChange bool
}

// showBranding serves GET /dashboard/projects/{project}/branding. It also serves POST for the
// preview, which shows the form again with a preview of its values and saves nothing.
func (a *brandPages) showBranding(v *visit) error { return a.previewForm(v, nil) }

// previewForm shows the form with the submitted values and the chosen logos, if there are any.
func (a *brandPages) previewForm(v *visit, c *idp.Client) error {
	chosen, err := v.typedLogos(v.r.Context())
	if err != nil {
		return a.showBrandPage(v, http.StatusUnprocessableEntity, c, chosen, err)
	}
	return a.showBrandPage(v, http.StatusOK, c, chosen, nil)
}

// showClientBranding is like showBranding, but for a client. Its path is
// /dashboard/projects/{project}/clients/{id}/branding.
func (a *brandPages) showClientBranding(v *visit) error {
	c, err := a.clients.client(v)
	if err != nil {
		return err
	}
	return a.previewForm(v, &c)
}

// brandForm returns the form for the branding of a client, or of the project if c is nil.
func (v *visit) brandForm(c *idp.Client) form {
	project := v.project
	name, hint := project.Name, "The project’s name. People see it in mails and invitations."
	own := idp.Brand{Color: project.Color, Terms: project.Terms, Privacy: project.Privacy}
	fallback := "Leave empty for selvage’s color."
	if c != nil {
		name, hint = c.Name, "People see it when they sign in."
		own = idp.Brand{Color: c.BrandColor, Terms: c.TermsURI, Privacy: c.PolicyURI}
		fallback = "Leave empty for the project’s color."
	}

	title := input{
		Kind:   kindText,
		Type:   "text",
		Name:   "name",
		Label:  "Name",
		Hint:   hint,
		Length: 100,
		Value:  name,
		Focus:  true,
	}
	color := input{
		Kind:    kindColor,
		Name:    "color",
		Label:   "Color",
		Hint:    words.Sentences("For buttons and links: # and six hexadecimal digits, such as #2f4b9b.", fallback),
		Length:  7,
		Value:   own.Color,
		Example: "#2f4b9b",
	}
	inputs := []input{
		title,
		color,
		urlInput("tos_uri", "Terms of service", "The URL, linked below the login form.", own.Terms),
		urlInput("policy_uri", "Privacy policy", "", own.Privacy),
	}
	return form{Inputs: inputs, Seen: marks(inputs)}
}

// showBrandPage shows the form and a preview, for a client or, if c is nil, for the project. The form
// keeps chosen logos until they are saved.
func (a *brandPages) showBrandPage(v *visit, code int, c *idp.Client, chosen brand.Logos, wrong error) error {
	p := brandPage{
		Base:      v.base(),
		Action:    v.base() + "/branding",
		Title:     "Branding",
		Form:      v.brandForm(c),
		Preview:   preview{Real: a.AuthURL + "/account?project=" + v.project.ID},
		MayChange: v.mayIn(operator.Write),
	}
	kept := map[brand.Theme]string{brand.Light: v.project.Logo, brand.Dark: v.project.DarkLogo}
	fallback := "" // the color if the form has none
	if c != nil {
		row := v.clientRow(*c)
		p.Client = true
		p.Action = row.URL + "/branding"
		p.Title = words.Textf("Branding of %s", row.Title)
		p.Back = row.URL
		p.BackTo = row.Title
		p.Preview.Real = a.clients.tryURL(*c)
		kept = map[brand.Theme]string{brand.Light: c.Logo, brand.Dark: c.DarkLogo}
		fallback = v.project.Color
	}

	if v.form != nil {
		retype(p.Form.Inputs, v.form)
	}
	if v.form != nil && code == http.StatusOK {
		// A preview keeps the form's digests, so that saving detects changes by others.
		p.Form.Seen = v.form.Get("seen")
	}
	logos, err := a.logoFields(v, kept, chosen)
	if err != nil {
		return err
	}
	p.Logos = logos
	if wrong != nil && !p.blame(relabel(wrong)) {
		return wrong
	}

	look := make(url.Values)
	for _, in := range p.Form.Inputs {
		look.Set(in.Name, strings.TrimSpace(in.Value))
	}

	p.Preview.Page = p.Action + "/preview?" + look.Encode()
	if slices.ContainsFunc(p.Logos, func(f logoField) bool { return f.Chosen != nil }) {
		p.Preview.Documents, err = a.renderBothThemes(v, c, look, p.Logos)
		if err != nil {
			return err
		}
	}
	digits := strings.TrimPrefix(cmp.Or(colorOf(look), fallback), "#")
	if color, ok := brand.ParseColor(digits); ok {
		p.Preview.Verdicts = readingsOf(v.words(), color)
	}
	self := []string{"'self'"}
	options := templates.Options{Status: code, Connect: self, Frames: self}
	return a.pageWith(v, options, p.Title, "branding", p)
}

// colorOf returns the color in a form or query.
func colorOf(posted url.Values) string {
	return strings.ToLower(strings.TrimSpace(posted.Get("color")))
}

// relabel changes errors about the field brand_color so that they name the form's input, color.
func relabel(err error) error {
	var relabeled []error
	for _, p := range problem.All(err) {
		q := *p
		if rest, ok := strings.CutPrefix(q.Message, "brand_color"); ok {
			q.Param = "color"
			q.Message = "color" + rest
		}
		relabeled = append(relabeled, &q)
	}
	if relabeled == nil {
		return err
	}
	return errors.Join(relabeled...)
}

// saveBranding serves POST /dashboard/projects/{project}/branding. It writes only the fields that
// the operator changed, so that it does not overwrite changes by others.
func (a *brandPages) saveBranding(v *visit) error {
	wrong := v.merge(v.brandForm(nil).Inputs)
	logos, err := v.typedLogos(v.r.Context())
	changed := func(name, old string) *string {
		if s := strings.TrimSpace(v.form.Get(name)); s != old {
			return &s
		}
		return nil
	}

	v.form.Set("color", colorOf(v.form))
	p := v.project
	change := fabric.ProjectChange{
		Name:    changed("name", p.Name),
		Color:   changed("color", p.Color),
		Terms:   changed("tos_uri", p.Terms),
		Privacy: changed("policy_uri", p.Privacy),
		Logos:   logos,
	}
	wrong = errors.Join(wrong, change.Check(), err)
	if wrong != nil {
		return a.showBrandPage(v, http.StatusUnprocessableEntity, nil, logos, wrong)
	}

	if _, err := a.Fabric.Projects.Update(v.r.Context(), p.ID, change); err != nil {
		return err
	}
	return v.redirect(v.base() + "/branding?done=changed")
}

// saveClientBranding serves POST /dashboard/projects/{project}/clients/{id}/branding.
func (a *brandPages) saveClientBranding(v *visit) error {
	c, err := a.clients.client(v)
	if err != nil {
		return err
	}
	wrong := v.merge(v.brandForm(&c).Inputs)
	logos, err := v.typedLogos(v.r.Context())

	v.form.Set("color", colorOf(v.form))
	wrong = errors.Join(wrong, err)
	if wrong == nil {
		wrong = a.Clients.Clients.Rebrand(v.r.Context(), c.ID, logos, func(now *idp.Client) {
			change := func(member *string, name, old string) {
				if text := strings.TrimSpace(v.form.Get(name)); text != old {
					*member = text
				}
			}
			change(&now.Name, "name", c.Name)
			change(&now.BrandColor, "color", c.BrandColor)
			change(&now.TermsURI, "tos_uri", c.TermsURI)
			change(&now.PolicyURI, "policy_uri", c.PolicyURI)
		})
	}

	if wrong != nil {
		return a.showBrandPage(v, http.StatusUnprocessableEntity, &c, logos, wrong)
	}
	return v.redirect(v.clientRow(c).URL + "/branding?done=changed")
}
