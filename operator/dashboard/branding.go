package dashboard

import (
	"cmp"
	"encoding/base64"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// brandPages show and change the branding of a project or an OAuth client.
type brandPages struct {
	*site
	clients *clientPages
	Clients *idp.Provider
}

// A brandPage shows the branding of a project or of a client: what people see when they sign in.
type brandPage struct {
	Base, Action, Back, BackTo, Title string
	Client                            bool
	Form                              form
	Logo                              *logoView // nil if the project or client has no logo
	Chosen                            *logoView // a new logo that is not saved yet, or nil
	ChosenFile                        string    // the picture of Chosen in base64, sent back with the form
	Preview                           preview
	MayChange                         bool
}

// A logoView is a logo as a data URL for a page. The page cannot use the public URL, which may be
// on another host.
type logoView struct {
	brand.ShownLogo
	URL template.URL
}

// logoOf returns the logo with the given name, or nil if it does not exist.
func (a *brandPages) logoOf(v *visit, name string) (*logoView, error) {
	shown, ok := brand.ParseLogo(name)
	if !ok {
		return nil, nil
	}
	body, err := a.Fabric.Projects.FindLogo(v.r.Context(), name)
	if errors.Is(err, problem.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return viewLogo(shown, body), nil
}

// viewLogo returns a logo that package brand has drawn.
func viewLogo(shown brand.ShownLogo, body []byte) *logoView {
	return &logoView{shown, template.URL(
		"data:image/png;base64," + base64.StdEncoding.EncodeToString(body))} // base64 of our own image
}

// showBranding serves GET /dashboard/projects/{project}/branding. It also serves POST for the
// preview, which shows the form again with a preview of its values and saves nothing.
func (a *brandPages) showBranding(v *visit) error { return a.previewForm(v, nil) }

// previewForm shows the form with the submitted values and the chosen logo, if there are any.
func (a *brandPages) previewForm(v *visit, c *idp.Client) error {
	chosen, isGiven, err := v.typedLogo()
	if err != nil {
		return a.brandPage(v, http.StatusUnprocessableEntity, c, brand.Logo{}, err)
	}
	if !isGiven {
		chosen = brand.Logo{}
	}
	return a.brandPage(v, http.StatusOK, c, chosen, nil)
}

// showClientBranding does the same as showBranding for a client, below
// /dashboard/projects/{project}/clients/{id}.
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

	inputs := []input{
		{Kind: "text", Type: "text", Name: "name", Label: "Name", Hint: hint, Length: 100, Value: name},
		{Kind: "color", Name: "color", Label: "Color",
			Hint: words.Sentences("For buttons and links: # and six hexadecimal digits, such as #2f4b9b.",
				fallback), Length: 7, Value: own.Color, Example: "#2f4b9b"},
		{Kind: "text", Type: "url", Name: "tos_uri", Label: "Terms of service",
			Hint: "The URL, linked below the login form.", Length: 2000, Value: own.Terms},
		{Kind: "text", Type: "url", Name: "policy_uri", Label: "Privacy policy", Length: 2000, Value: own.Privacy},
	}
	return form{Inputs: inputs, Seen: marks(inputs)}
}

// brandPage shows the form and a preview, for a client or, if c is nil, for the project. The form
// keeps a chosen logo until it is saved.
func (a *brandPages) brandPage(v *visit, code int, c *idp.Client, chosen brand.Logo, wrong error) error {
	project := v.project
	p := brandPage{Base: v.base(), Action: v.base() + "/branding", Title: "Branding",
		MayChange: v.mayIn(operator.Write), Form: v.brandForm(c)}
	logoName, fallback := project.Logo, ""
	p.Preview.Real = a.AuthURL + "/account?project=" + project.ID
	if c != nil {
		row := v.clientRow(*c)
		p.Client = true
		p.Action, p.Title = row.URL+"/branding", words.Textf("Branding of %s", row.Title)
		p.Back, p.BackTo = row.URL, row.Title
		p.Preview.Real = a.clients.tryURL(*c)
		logoName, fallback = c.Logo, project.Color
	}

	if v.form != nil {
		retype(p.Form.Inputs, v.form)
	}
	if v.form != nil && code == http.StatusOK { // a preview keeps the typed values
		p.Form.Seen = v.form.Get("seen")
	}
	if wrong != nil && !p.Form.blame(relabel(wrong)) {
		return wrong
	}
	var err error
	if p.Logo, err = a.logoOf(v, logoName); err != nil {
		return err
	}

	look := make(url.Values)
	for _, in := range p.Form.Inputs {
		look.Set(in.Name, strings.TrimSpace(in.Value))
	}
	p.Preview.Page = p.Action + "/preview?" + look.Encode()
	if shown, ok := brand.ParseLogo(chosen.Name); ok {
		p.Chosen, p.ChosenFile = viewLogo(shown, chosen.PNG), base64.StdEncoding.EncodeToString(chosen.PNG)
		if p.Preview.Documents, err = a.samples(v, c, look, p.Chosen); err != nil {
			return err
		}
	}
	if chosen, ok := brand.ParseColor(strings.TrimPrefix(cmp.Or(colorOf(look), fallback), "#")); ok {
		p.Preview.Verdicts = readingsOf(chosen)
	}
	return a.pageWith(v, templates.Options{Status: code, Connect: []string{"'self'"},
		Frames: []string{"'self'"}}, p.Title, "branding", p)
}

// colorOf returns the color in a form or query.
func colorOf(posted url.Values) string {
	return strings.ToLower(strings.TrimSpace(posted.Get("color")))
}

// relabel replaces the parameter names in an error with the labels of the form.
func relabel(err error) error {
	var all []error
	for _, p := range problem.All(err) {
		q := *p
		if q.Param == "brand_color" {
			q.Param, q.Message = "color", strings.ReplaceAll(q.Message, "brand_color", "the color")
		}
		q.Message = strings.NewReplacer("tos_uri", "the URL", "policy_uri", "the URL", "color must",
			"the color must").Replace(q.Message)
		all = append(all, &q)
	}
	if all == nil {
		return err
	}
	return errors.Join(all...)
}

// saveBranding serves POST /dashboard/projects/{project}/branding. It writes only the fields that
// the operator changed, so that it does not overwrite changes by others.
func (a *brandPages) saveBranding(v *visit) error {
	wrong := v.merge(v.brandForm(nil).Inputs)
	uploaded, isGiven, err := v.typedLogo()
	text := func(name, kept string) *string {
		if s := strings.TrimSpace(v.form.Get(name)); s != kept {
			return &s
		}
		return nil
	}

	v.form.Set("color", colorOf(v.form))
	p := v.project
	change := fabric.ProjectChange{Name: text("name", p.Name), Color: text("color", p.Color),
		Terms: text("tos_uri", p.Terms), Privacy: text("policy_uri", p.Privacy)}
	wrong = errors.Join(wrong, change.Check(), err)
	if wrong != nil {
		return a.brandPage(v, http.StatusUnprocessableEntity, nil, uploaded, wrong)
	}
	if _, err := a.Fabric.Projects.Update(v.r.Context(), p.ID, change); err != nil {
		return err
	}
	if isGiven {
		if _, err := a.Fabric.Projects.SetLogo(v.r.Context(), p.ID, uploaded); err != nil {
			return err
		}
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
	uploaded, isGiven, err := v.typedLogo()

	v.form.Set("color", colorOf(v.form))
	wrong = errors.Join(wrong, err)
	if wrong == nil {
		wrong = a.Clients.Clients.Change(v.r.Context(), c.ID, func(now *idp.Client) {
			for name, member := range map[string]struct{ kept, now *string }{
				"name": {&c.Name, &now.Name}, "color": {&c.BrandColor, &now.BrandColor},
				"tos_uri": {&c.TermsURI, &now.TermsURI}, "policy_uri": {&c.PolicyURI, &now.PolicyURI},
			} {
				if text := strings.TrimSpace(v.form.Get(name)); text != *member.kept {
					*member.now = text
				}
			}
		})
	}

	if wrong != nil {
		return a.brandPage(v, http.StatusUnprocessableEntity, &c, uploaded, wrong)
	}
	if isGiven {
		if _, err := a.Clients.Clients.SetLogo(v.r.Context(), c.ID, uploaded); err != nil {
			return err
		}
	}
	return v.redirect(v.clientRow(c).URL + "/branding?done=changed")
}

// maxLogoForm is the maximum number of bytes that are read of an uploaded file. It is more than the
// limit for logos, so that an operator who uploads too large a picture still gets the form as the
// response.
const maxLogoForm = 4 * brand.MaxUpload

// typedLogo returns the uploaded logo, and whether the form changes the logo. If the picture is
// unreadable, typedLogo fails before anything is changed.
func (v *visit) typedLogo() (l brand.Logo, isGiven bool, err error) {
	if v.file != nil && v.file.FileName() != "" {
		raw, err := io.ReadAll(io.LimitReader(v.file, brand.MaxUpload+1))
		if err != nil {
			return l, false, problem.New(problem.Malformed, "file", "the file did not arrive completely")
		}
		_, _ = io.Copy(io.Discard, v.file) // browsers show no response until the upload is complete
		if len(raw) > 0 {
			l, err = brand.MakeLogo(v.r.Context(), "logo", raw)
			return l, err == nil, err
		}
	}
	if kept := v.form.Get("logo"); kept != "" { // a logo that was chosen earlier and sent back with the form
		raw, err := base64.StdEncoding.DecodeString(kept)
		if err != nil {
			return l, false, problem.New(problem.Malformed, "bad_request", "the form is invalid")
		}
		l, err = brand.MakeLogo(v.r.Context(), "logo", raw)
		return l, err == nil, err
	}
	return l, v.form.Get("remove") != "", nil
}
