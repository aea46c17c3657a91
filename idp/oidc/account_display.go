package oidc

import (
	"net/http"
	"net/url"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

func showDisplay(ac *account, r *http.Request, _ visit, page *templates.AccountPage) error {
	say := ac.words(r)
	for _, theme := range []templates.Choice{
		{Value: "", Title: say.Say("display.auto")},
		{Value: "light", Title: say.Say("display.light")},
		{Value: "dark", Title: say.Say("display.dark")},
	} {
		theme.Chosen = theme.Value == web.Theme(r)
		page.Display.Themes = append(page.Display.Themes, theme)
	}
	for _, language := range words.All() {
		choice := templates.Choice{Value: language.Tag, Title: language.Name, Chosen: language == say}
		page.Display.Languages = append(page.Display.Languages, choice)
	}
	return nil
}

// changeDisplay serves POST /account/display.
func (ac *account) changeDisplay(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	ac.cookies.SetTheme(w, r, form.Get("theme"))
	if chosen := words.In(form.Get("language")); chosen != nil {
		ac.cookies.SetLanguage(w, r, chosen.Tag)
		if err := ac.setLocale(r, v, chosen.Tag); err != nil {
			return err
		}
	}
	return backToAccount(w, v, "display")
}

// setLocale sets the language of an account. It keeps the current locale if that locale has the
// same language, perhaps with a region.
func (ac *account) setLocale(r *http.Request, v visit, tag string) error {
	if known := words.In(v.sub.Claims.Locale); known != nil && known.Tag == tag {
		return nil
	}
	_, err := ac.Fabric.Subscribers.Update(r.Context(), v.ProjectID, v.SubscriberID,
		fabric.SubscriberInput{Locale: &tag})
	return err
}
