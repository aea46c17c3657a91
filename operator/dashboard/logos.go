package dashboard

import (
	"context"
	"encoding/base64"
	"errors"
	"html/template"
	"io"

	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// A logoField is the part of the branding form for the logo of one theme.
type logoField struct {
	input
	File       string // name of the input for a new picture
	Remove     string // name of the input that removes the logo
	IsDark     bool
	IsRemoved  bool
	Kept       *logoView // nil if the project or client has no such logo
	Chosen     *logoView // a new logo that has not been saved yet, or nil
	ChosenFile string    // the picture of Chosen in base64, sent back with the form
}

// A logoView is a logo as a data URL for a page. The page cannot use the public URL, which may be
// on another host.
type logoView struct {
	brand.ShownLogo
	URL template.URL
}

// picture returns the logo for the login page.
func (l *logoView) picture() templates.Picture {
	return templates.Picture{URL: l.URL, Wide: l.Wide, High: l.High, Plate: l.Plate}
}

// viewLogo returns the view of a logo that package brand has drawn.
func viewLogo(shown brand.ShownLogo, body []byte) *logoView {
	source := "data:image/png;base64," + base64.StdEncoding.EncodeToString(body)
	return &logoView{ShownLogo: shown, URL: template.URL(source)} // safe: base64 of our own image
}

// logoOf returns the logo with the given name, or nil if it does not exist.
func (a *brandPages) logoOf(ctx context.Context, name string) (*logoView, error) {
	shown, ok := brand.ParseLogo(name)
	if !ok {
		return nil, nil
	}
	body, err := a.Fabric.Projects.FindLogo(ctx, name)
	if errors.Is(err, problem.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return viewLogo(shown, body), nil
}

// logoFields returns the fields for the logos with the names in kept, and for the logos in chosen.
func (a *brandPages) logoFields(
	v *visit, kept map[brand.Theme]string, chosen brand.Logos,
) (fields []logoField, err error) {
	for _, theme := range brand.Themes {
		current, err := a.logoOf(v.r.Context(), kept[theme])
		if err != nil {
			return nil, err
		}
		logo, isChosen := chosen[theme]
		f := logoField{
			input:     logoInput(theme),
			File:      fileOf(theme),
			Remove:    "remove_" + theme.Param(),
			IsDark:    theme == brand.Dark,
			IsRemoved: isChosen && logo.Name == "",
			Kept:      current,
		}
		if shown, ok := brand.ParseLogo(logo.Name); ok {
			f.Chosen = viewLogo(shown, logo.PNG)
			f.ChosenFile = base64.StdEncoding.EncodeToString(logo.PNG)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// logoInput returns the label and the hint of the field for a logo.
func logoInput(theme brand.Theme) input {
	if theme == brand.Dark {
		return input{
			Name:  theme.Param(),
			Label: "Logo for dark pages",
			Hint:  "Leave empty to show the same logo on light and dark pages.",
		}
	}
	return input{
		Name:  theme.Param(),
		Label: "Logo",
		Hint:  "PNG, JPEG or WebP up to 1 MB. It is shown at up to 200 by 48 pixels. Transparency is kept.",
	}
}

// blame assigns the parts of an error to the inputs and logos of the form. ok is false if the
// operator cannot resolve the error there.
func (p *brandPage) blame(err error) (ok bool) {
	whole := form{Inputs: p.Form.Inputs}
	for _, logo := range p.Logos {
		whole.More = append(whole.More, logo.input)
	}
	ok = whole.blame(err)
	for i := range p.Logos {
		p.Logos[i].input = whole.More[i]
	}
	p.Form.Faults = whole.Faults
	return ok
}

// shown returns the logo that the form would save, or nil.
func (f logoField) shown() *logoView {
	switch {
	case f.IsRemoved:
		return nil
	case f.Chosen != nil:
		return f.Chosen
	}
	return f.Kept
}

// maxLogoForm is the maximum number of bytes that are read from the uploaded files. It is larger
// than the limit for logos, so that an operator whose pictures are too large still gets the form as
// the response.
const maxLogoForm = 8 * brand.MaxUpload

// fileOf returns the name of the input for the file of a logo.
func fileOf(theme brand.Theme) string {
	if theme == brand.Dark {
		return "dark_file"
	}
	return "file"
}

// typedLogos returns the logos that the form sets or removes. If a picture is unreadable, typedLogos
// returns an error and the other logos.
func (s *submission) typedLogos(ctx context.Context) (brand.Logos, error) {
	files, err := s.pictures()
	if err != nil {
		return nil, err
	}

	logos := make(brand.Logos)
	var errs []error
	for _, theme := range brand.Themes {
		picture := files[fileOf(theme)]
		sentBack := s.form.Get(theme.Param()) // chosen earlier
		if len(picture) == 0 && sentBack != "" {
			picture, err = base64.StdEncoding.DecodeString(sentBack)
			if err != nil {
				return nil, problem.New(problem.Malformed, "bad_request", "the form is invalid")
			}
		}

		switch {
		case len(picture) > 0:
			logo, err := brand.MakeLogo(ctx, theme.Param(), picture)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			logos[theme] = logo
		case s.form.Get("remove_"+theme.Param()) != "":
			logos[theme] = brand.Logo{}
		}
	}
	return logos, errors.Join(errs...)
}

// pictures reads the uploaded pictures, by the names of their inputs.
func (s *submission) pictures() (map[string][]byte, error) {
	pictures := make(map[string][]byte)
	for part := s.file; part != nil; {
		raw, err := io.ReadAll(io.LimitReader(part, brand.MaxUpload+1))
		if err != nil {
			return nil, problem.New(problem.Malformed, "file", "the file did not arrive completely")
		}
		if isFile(part) {
			pictures[part.FormName()] = raw
		}
		_, _ = io.Copy(io.Discard, part) // browsers show no response until the upload is complete

		part, err = s.files.NextPart()
		if errors.Is(err, io.EOF) {
			return pictures, nil
		}
		if err != nil {
			return nil, problem.New(problem.Malformed, "file", "the file did not arrive completely")
		}
	}
	return pictures, nil
}
