package oidc

import (
	"net/http"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// showColor serves GET /brand/{file}, the style sheet for a color. The content depends only on the
// file name. It can therefore be cached forever, and reveals nothing.
func (pg *pages) showColor(w http.ResponseWriter, r *http.Request) error {
	digits, isSheet := strings.CutSuffix(r.PathValue("file"), ".css")
	c, ok := brand.ParseColor(digits)
	if !isSheet || !ok {
		return problem.NoSuch("color")
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(brand.Sheet(c))) // the browser may have disconnected
	return nil
}

// showLogo serves GET /brand/logo/{file}, the logo of a project or client. The file name is derived
// from the content. The image was re-encoded on upload, and the headers make even a malicious image
// harmless.
func (pg *pages) showLogo(w http.ResponseWriter, r *http.Request) error {
	name, isPNG := strings.CutSuffix(r.PathValue("file"), ".png")
	if !isPNG {
		return problem.NoSuch("logo")
	}
	body, err := pg.Fabric.Projects.FindLogo(r.Context(), name)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Cross-Origin-Resource-Policy", "same-site")
	web.ServeDocument(w, r, "image/png", `"`+name+`"`, body)
	return nil
}

// writeNoColor answers requests for unknown colors and logos with 404.
func writeNoColor(w http.ResponseWriter, _ *http.Request, _ error) {
	w.WriteHeader(http.StatusNotFound)
}

// learn stores the client of a request, and the languages that the request asks for. Pages for the
// request then use the client's branding and one of these languages.
func learn(r *http.Request, req idp.AuthRequest, c idp.Client) {
	m := presentationOf(r)
	m.locales, m.client = req.UILocales, c
}

// brand returns the branding of the pages for r: the client's branding or, if there is none, the
// project's.
func (pg *pages) brand(r *http.Request) (b templates.Brand) {
	c := presentationOf(r).client
	if c.ProjectID == "" {
		return b
	}

	own, err := pg.Clients.Brand(r.Context(), c)
	if err != nil { // show the page with only the client's own branding
		web.LogInternal(r, pg.log, err)
	}
	b.Color, b.Terms, b.Privacy = own.Color, own.Terms, own.Privacy
	b.Name = c.Name

	b.Logo, b.DarkLogo = templates.PictureOf(own.Logo), templates.PictureOf(own.DarkLogo)
	b.Color = strings.TrimPrefix(b.Color, "#")
	return b
}
