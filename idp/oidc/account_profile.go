package oidc

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// profileOf returns the section for the subscriber's names, as they are stored.
func profileOf(say *words.Words, sub fabric.Subscriber) templates.ProfileSection {
	name := func(id, field, fills, label, stored string) templates.ProfileName {
		return templates.ProfileName{
			ID:    id,
			Name:  field,
			Fills: fills,
			Label: say.Say(label),
			Value: stored,
			Was:   stored,
		}
	}
	return templates.ProfileSection{
		First:   name("first-name", "first_name", "given-name", "profile.first", sub.FirstName),
		Last:    name("last-name", "last_name", "family-name", "profile.last", sub.LastName),
		Display: name("display-name", "display_name", "nickname", "profile.display", sub.DisplayName),
	}
}

func showProfile(ac *account, r *http.Request, v visit, page *templates.AccountPage) error {
	if page.Profile.First.ID == "" { // no form shows what was typed
		page.Profile = profileOf(ac.words(r), v.sub)
	}
	return nil
}

// changeProfile serves POST /account/profile. It writes only the names changed in the form. If
// somebody else has changed one of them since the page was shown, the page says so.
func (ac *account) changeProfile(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	say, in := ac.words(r), fabric.Profile{}
	shown, wrong := profileOf(say, v.sub), false
	fields := map[*templates.ProfileName]**string{
		&shown.First: &in.FirstName, &shown.Last: &in.LastName, &shown.Display: &in.DisplayName}
	for f, change := range fields {
		text, was := strings.TrimSpace(form.Get(f.Name)), strings.TrimSpace(form.Get("was_"+f.Name))
		stored := strings.TrimSpace(f.Was) // REST and other providers may have stored spaces around it
		isTheirs := form.Has("was_"+f.Name) && was != stored
		if text == stored || isTheirs && text == was {
			continue
		}
		f.Value, *change = text, &text
		if isTheirs {
			f.Error, wrong = say.Say("profile.changed", "Text", f.Was), true
		}
	}

	var err error
	if !wrong {
		_, err = ac.Fabric.Subscribers.Update(r.Context(), v.ProjectID, v.SubscriberID,
			fabric.SubscriberInput{Profile: in})
	}
	for _, p := range problem.All(err) {
		for f := range fields {
			if p.Kind == problem.Invalid && p.Param == f.Name {
				f.Error, wrong = ac.fault(r, p), true
			}
		}
	}
	if wrong {
		return ac.page(w, r, v, templates.AccountPage{Profile: shown}, http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return backToAccount(w, v, "profile")
}
