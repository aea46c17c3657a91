package dashboard

import (
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// A stylesPage shows each part of the pages, in themes side by side.
type stylesPage struct {
	Themes []string
	Pages  bool // those of sign-in and account, not those of the dashboard
}

// showStyles serves GET /dashboard/_styles, for who works on the pages: to an owner at
// the machine itself.
func (a *settingsPages) showStyles(v *visit) error {
	if !web.IsLocal(v.r) {
		return problem.NoSuch("page")
	}
	data := stylesPage{Themes: []string{"light", "dark"}, Pages: v.r.URL.Query().Get("of") == "pages"}
	f := templates.Frame{Title: "Styles", FormToken: a.formToken(v), Now: v.now, Theme: web.Theme(v.r),
		Sheet: "dashboard.css"}
	if data.Pages {
		f.Sheet = "pages.css"
	}
	return templates.Write(v.w, templates.Dashboard{Page: "styles", Data: data, Frame: f},
		templates.Options{Scripts: true})
}
