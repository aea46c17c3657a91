package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/agent"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// sameBrowser reports whether two logins were made in the same browser.
func sameBrowser(a, b idp.Login) bool { return a.ID == b.ID || a.Mark != "" && a.Mark == b.Mark }

// browsersOf groups a subscriber's logins by browser. The logins must be sorted newest first. Each group
// keeps this order. If a login has replaced another one in the same browser, people see both as one
// session.
func browsersOf(all []idp.Login) (browsers [][]idp.Login) {
	for _, h := range all {
		i := slices.IndexFunc(browsers, func(of []idp.Login) bool { return sameBrowser(of[0], h) })
		if i < 0 {
			browsers = append(browsers, []idp.Login{h})
		} else {
			browsers[i] = append(browsers[i], h)
		}
	}
	return browsers
}

func showSessions(ac *account, r *http.Request, v visit, page *templates.AccountPage) error {
	all, err := ac.Logins.List(r.Context(), v.ProjectID, v.SubscriberID)
	if err != nil {
		return err
	}

	now := ac.Now()
	for _, of := range browsersOf(all) {
		seen := slices.MaxFunc(of, func(a, b idp.Login) int { return a.Seen.Compare(b.Seen) }).Seen
		row := templates.SessionRow{
			ID:       session.Digest(of[0].ID),
			Device:   deviceOf(ac.words(r), of[0].UserAgent),
			Address:  of[0].Address,
			SignedIn: ac.words(r).Ago(now, of[0].AuthTime),
			Seen:     ac.words(r).Ago(now, seen),
			Here:     sameBrowser(of[0], v.Login),
		}
		if row.Here {
			page.Sessions = slices.Insert(page.Sessions, 0, row)
		} else {
			page.Sessions = append(page.Sessions, row)
		}
	}
	return nil
}

// nameless maps the generic names from agent.Name to message keys.
var nameless = map[string]string{
	"A browser":         "agent.browser",
	"An app":            "agent.app",
	"An unknown device": "agent.none",
}

// deviceOf describes the sender of a User-Agent, such as "Firefox on Linux".
func deviceOf(say *words.Words, userAgent string) string {
	product, system, found := strings.Cut(agent.Name(userAgent), " on ")
	if key, ok := nameless[product]; ok {
		product = say.Say(key)
	}
	if !found {
		return product
	}
	return say.Say("agent.on", "Browser", product, "System", system)
}

// endLogin serves POST /account/sessions/end.
func (ac *account) endLogin(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	all, err := ac.Logins.List(r.Context(), v.ProjectID, v.SubscriberID)
	if err != nil {
		return err
	}

	for _, of := range browsersOf(all) {
		if session.Digest(of[0].ID) != form.Get("session") {
			continue
		}

		var ids []string
		for _, h := range of {
			ids = append(ids, h.ID)
		}
		if err := ac.Logins.End(r.Context(), ids...); err != nil {
			return err
		}

		if sameBrowser(of[0], v.Login) {
			return ac.logout.finish(w, r, logoutRequest{}, ids)
		}
	}

	return backToAccount(w, v, "session") // even if the session had already ended
}

// endAllLogins serves POST /account/sessions/end-all. It signs the subscriber out of all browsers
// and revokes all of the subscriber's tokens.
func (ac *account) endAllLogins(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	all, err := ac.Logins.List(r.Context(), v.ProjectID, v.SubscriberID)
	if err != nil {
		return err
	}
	if err := ac.Fabric.Subscribers.Revoke(r.Context(), v.ProjectID, v.SubscriberID); err != nil {
		return err
	}

	var here []string // logins in this browser; back-channel logouts sign people out of apps in other browsers
	for _, h := range all {
		if sameBrowser(h, v.Login) {
			here = append(here, h.ID)
		}
	}
	return ac.logout.finish(w, r, logoutRequest{}, here)
}

func showApps(ac *account, r *http.Request, v visit, page *templates.AccountPage) error {
	apps, err := ac.Consents.Apps(r.Context(), v.ProjectID, v.SubscriberID)
	if err != nil {
		return err
	}

	for _, app := range apps {
		row := templates.AppRow{
			ClientID: app.ClientID,
			Name:     app.Name,
			Since:    ac.words(r).Ago(ac.Now(), app.Since),
			URL:      app.OpenURL,
		}
		if row.Name == "" {
			row.Name = app.ClientID
		}
		for _, scope := range app.Scopes {
			row.Scopes = append(row.Scopes, meaningOf(ac.words(r), scope).Title)
		}
		page.Apps = append(page.Apps, row)
	}
	return nil
}

// revokeApp serves POST /account/apps/revoke.
func (ac *account) revokeApp(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	err := ac.Consents.Revoke(r.Context(), v.SubscriberID, form.Get("client"))
	if err != nil && !errors.Is(err, problem.NotFound) { // not found: the app no longer had access
		return err
	}
	return backToAccount(w, v, "app")
}
