package oidc

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

func showProfile(_ *account, _ *http.Request, v visit, page *templates.AccountPage) error {
	if page.Profile.Error == "" {
		page.Profile = templates.ProfileSection{FirstName: v.sub.FirstName, LastName: v.sub.LastName,
			DisplayName: v.sub.DisplayName}
	}
	return nil
}

// changeProfile serves POST /account/profile.
func (ac *account) changeProfile(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	said := func(name string) *string {
		text := strings.TrimSpace(form.Get(name))
		return &text
	}

	in := fabric.Profile{FirstName: said("first_name"), LastName: said("last_name"),
		DisplayName: said("display_name")}
	_, err := ac.Fabric.Subscribers.Update(r.Context(), v.ProjectID, v.SubscriberID,
		fabric.SubscriberInput{Profile: in})

	if p := problem.First(err); p != nil && p.Kind == problem.Invalid {
		page := templates.AccountPage{Profile: templates.ProfileSection{
			Error: ac.fault(r, p), FirstName: *in.FirstName, LastName: *in.LastName, DisplayName: *in.DisplayName,
		}}
		return ac.page(w, r, v, page, http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return backToAccount(w, v, "profile")
}
