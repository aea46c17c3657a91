package oidc

import (
	"net/http"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/palette"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// showColor serves GET /brand/{file}: the style sheet of a colour. It is made of its name
// alone, so that it may be kept for ever and tells nothing.
func (a *API) showColor(w http.ResponseWriter, r *http.Request) error {
	digits, isSheet := strings.CutSuffix(r.PathValue("file"), ".css")
	c, ok := palette.Parse(digits)
	if !isSheet || !ok {
		return problem.NoSuch("colour")
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(palette.Sheet(c))) // the browser may have gone
	return nil
}

// writeNoColor answers for a colour that there is not.
func writeNoColor(w http.ResponseWriter, _ *http.Request, _ error) {
	w.WriteHeader(http.StatusNotFound)
}

// learn notes what a request says of how its pages are shown, and of whom they are.
func learn(r *http.Request, req idp.AuthRequest, c idp.Client) {
	m := mannerOf(r)
	m.locales, m.client = req.UILocales, c
}

// brand gives whose the pages of r are: what its client says of itself, else its project.
func (a *API) brand(r *http.Request) (b templates.Brand) {
	c := mannerOf(r).client
	if c.ProjectID == "" {
		return b
	}
	b.Color, b.Terms, b.Privacy = c.BrandColor, c.TermsURI, c.PolicyURI
	if b.Color == "" {
		p, err := a.Fabric.FindProject(r.Context(), c.ProjectID)
		if err != nil { // a page without its colour is better than none
			web.LogInternal(r, a.log, err)
			return b
		}
		b.Color = p.Color
	}
	b.Color = strings.TrimPrefix(b.Color, "#")
	return b
}
