package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// suggestions queries the page of values that an input suggests.
var suggestions = page.Query{Size: page.DefaultSize}

// suggest adds suggestions to the inputs that refer to rows of the project.
func (a *tokenPages) suggest(v *visit, all []input) error {
	for i := range all {
		var err error
		switch all[i].Name {
		case "reference":
			all[i].Suggestions, err = a.suggestSubscribers(v, "")
		case "address_id":
			all[i].Suggestions, err = a.suggestAddresses(v)
		case "application_id":
			all[i].Suggestions, err = a.suggestClients(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *tokenPages) suggestSubscribers(v *visit, part string) (all []choice, err error) {
	found, err := a.Fabric.Subscribers.Search(v.r.Context(), v.project.ID, plainText(part), suggestions)
	for _, s := range found.Items {
		if by := cmp.Or(s.Email, s.Reference); by != "" {
			all = append(all, choice{Value: by, Title: s.FullName()})
		}
	}
	return all, err
}

func (a *tokenPages) suggestAddresses(v *visit) (all []choice, err error) {
	reaches := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID} // can reach every address
	found, err := a.Fabric.Addresses.List(v.r.Context(), reaches, fabric.AddressFilter{}, suggestions)
	for _, one := range found.Items {
		all = append(all, choice{Value: one.Path(), Title: one.DisplayName})
	}
	return all, err
}

func (a *tokenPages) suggestClients(v *visit) (all []choice, err error) {
	found, err := a.Clients.Clients.List(v.r.Context(), v.project.ID, suggestions)
	for _, c := range found.Items {
		all = append(all, choice{Value: c.ID, Title: c.Name})
	}
	return all, err
}

// findSubscriber serves POST /dashboard/projects/{project}/subscribers/find. It returns the
// subscribers that match the typed text, for an input that suggests them.
func (a *tokenPages) findSubscriber(v *visit) error {
	found, err := a.suggestSubscribers(v, v.form.Get("text"))
	if err != nil {
		return err
	}
	all := make([][2]string, len(found))
	for i, c := range found {
		all[i] = [2]string{c.Value, c.Title}
	}
	web.NoStore(v.w)
	return web.JSON(v.w, http.StatusOK, all)
}

// addressID returns the id of the address whose path or id is text.
func (a *tokenPages) addressID(v *visit, param, text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		return text, nil
	}
	found, err := a.Fabric.Addresses.FindAt(v.r.Context(), v.project.ID, text)
	if errors.Is(err, problem.NotFound) {
		return "", problem.BadParam(param, "%s is not an address of this project", text)
	}
	return found.ID, err
}
