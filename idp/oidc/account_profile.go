package oidc

import (
	"net/http"
	"net/url"
	"slices"
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
	if page.Profile.First.ID == "" { // otherwise the page shows a form with errors again
		page.Profile = profileOf(ac.words(r), v.sub)
	}
	return nil
}

// changeProfile serves POST /account/profile. It writes only the names changed in the form. If
// somebody else has changed one of them since the page was shown, the page says so.
func (ac *account) changeProfile(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	say := ac.words(r)
	shown := profileOf(say, v.sub)
	change := fabric.Profile{
		FirstName:   readName(say, form, &shown.First),
		LastName:    readName(say, form, &shown.Last),
		DisplayName: readName(say, form, &shown.Display),
	}
	fields := []*templates.ProfileName{&shown.First, &shown.Last, &shown.Display}
	isWrong := func(field *templates.ProfileName) bool { return field.Error != "" }
	if slices.ContainsFunc(fields, isWrong) {
		return ac.page(w, r, v, templates.AccountPage{Profile: shown}, http.StatusUnprocessableEntity)
	}

	_, err := ac.Fabric.Subscribers.Update(r.Context(), v.ProjectID, v.SubscriberID,
		fabric.SubscriberInput{Profile: change})
	for _, p := range problem.All(err) {
		for _, field := range fields {
			if p.Kind == problem.Invalid && p.Param == field.Name {
				field.Error = ac.fault(r, p)
			}
		}
	}
	if slices.ContainsFunc(fields, isWrong) {
		return ac.page(w, r, v, templates.AccountPage{Profile: shown}, http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return backToAccount(w, v, "profile")
}

// readName reads a name from a form into the field with which the page shows it again. It returns
// nil if the form does not change the name. If somebody else has changed the name since the page was
// shown, readName sets the field's Error.
func readName(say *words.Words, form url.Values, field *templates.ProfileName) *string {
	name, was := strings.TrimSpace(form.Get(field.Name)), strings.TrimSpace(form.Get("was_"+field.Name))
	stored := strings.TrimSpace(field.Was) // the REST API and upstream providers may store spaces around it
	isTheirs := form.Has("was_"+field.Name) && was != stored
	if name == stored || isTheirs && name == was {
		return nil
	}

	field.Value = name
	if isTheirs {
		field.Error = say.Say("profile.changed", "Text", field.Was)
	}
	return &name
}
