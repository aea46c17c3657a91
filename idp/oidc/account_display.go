package oidc

import (
	"net/http"
	"net/url"

	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

func showDisplay(_ *API, r *http.Request, _ visit, page *templates.AccountPage) error {
	for _, o := range []templates.Choice{{Value: "", Title: "As this device prefers"}, {Value: "light", Title: "Light"}, {Value: "dark", Title: "Dark"}} {
		o.Chosen = o.Value == web.Theme(r)
		page.Display.Themes = append(page.Display.Themes, o)
	}
	return nil
}

// changeDisplay serves POST /account/display.
func (a *API) changeDisplay(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	a.cookies.SetTheme(w, r, form.Get("theme"))
	return backToAccount(w, v, "display")
}
