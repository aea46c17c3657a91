package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
)

// suggestions is the query for the values that an input suggests.
var suggestions = page.Query{Size: page.DefaultSize}

// suggest adds suggestions to the inputs that refer to rows of the project.
func (a *tokenPages) suggest(v *visit, inputs []input) error {
	for i := range inputs {
		var err error
		switch inputs[i].Name {
		case "reference":
			inputs[i].Suggestions, err = a.suggestSubscribers(v, "")
		case "address_id", "allowed_addresses":
			inputs[i].Suggestions, err = a.suggestAddresses(v)
		case "application_id":
			inputs[i].Suggestions, err = a.suggestClients(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// suggestSubscribers suggests the emails or references of subscribers that match a text.
func (a *tokenPages) suggestSubscribers(v *visit, part string) (suggested []choice, err error) {
	found, err := a.Fabric.Subscribers.Search(v.r.Context(), v.project.ID, plainText(part), suggestions)
	if err != nil {
		return nil, err
	}
	for _, s := range found.Items {
		if name := cmp.Or(s.Email, s.Reference); name != "" {
			suggested = append(suggested, choice{Value: name, Title: s.FullName()})
		}
	}
	return suggested, nil
}

// suggestAddresses suggests the paths of addresses.
func (a *tokenPages) suggestAddresses(v *visit) (suggested []choice, err error) {
	found, err := a.Fabric.Addresses.List(v.r.Context(), anyCaller(v), fabric.AddressFilter{}, suggestions)
	if err != nil {
		return nil, err
	}
	for _, one := range found.Items {
		suggested = append(suggested, choice{Value: one.Path(), Title: one.DisplayName})
	}
	return suggested, nil
}

// suggestClients suggests the names of OAuth clients. It suggests the id of a client whose name is
// missing or not unique.
func (a *tokenPages) suggestClients(v *visit) (suggested []choice, err error) {
	found, err := a.Clients.Clients.List(v.r.Context(), v.project.ID, suggestions)
	if err != nil {
		return nil, err
	}
	uses := make(map[string]int)
	for _, c := range found.Items {
		uses[strings.ToLower(c.Name)]++
	}
	for _, c := range found.Items {
		if c.Name == "" || uses[strings.ToLower(c.Name)] > 1 {
			suggested = append(suggested, choice{Value: c.ID, Title: c.Name})
		} else {
			suggested = append(suggested, choice{Value: c.Name, Title: c.ID})
		}
	}
	return suggested, nil
}

// findSubscriber serves POST /dashboard/projects/{project}/subscribers/find. It returns the
// subscribers that match the typed text, for an input that suggests them.
func (a *tokenPages) findSubscriber(v *visit) error {
	found, err := a.suggestSubscribers(v, v.form.Get("text"))
	if err != nil {
		return err
	}
	pairs := make([][2]string, len(found))
	for i, c := range found {
		pairs[i] = [2]string{c.Value, c.Title}
	}
	web.NoStore(v.w)
	return web.JSON(v.w, http.StatusOK, pairs)
}

// addressID returns the id of the address whose path, title or id is the given text.
func (a *tokenPages) addressID(v *visit, param, text string) (string, error) {
	if strings.HasPrefix(text, "/") {
		found, err := a.Fabric.Addresses.FindAt(v.r.Context(), v.project.ID, text)
		if errors.Is(err, problem.NotFound) {
			return "", addressNames.unknown(v, param, text)
		}
		if err != nil {
			return "", err
		}
		return found.ID, nil
	}
	if text == "" || uuid.MatchString(text) {
		return text, nil
	}

	found, err := a.Fabric.Addresses.List(v.r.Context(), anyCaller(v), fabric.AddressFilter{DisplayName: text},
		page.Query{Size: page.MaxSize})
	if p := problem.First(err); p != nil && p.Kind == problem.Invalid { // no address has such a name
		return addressNames.only(v, nil, false, param, text)
	}
	if err != nil {
		return "", err
	}
	var ids []string
	for _, one := range found.Items {
		if strings.EqualFold(one.DisplayName, text) {
			ids = append(ids, one.ID)
		}
	}
	return addressNames.only(v, ids, found.Next != "", param, text)
}

// clientID returns the id of the OAuth client whose id or name is the given text. The text "" means
// no client.
func (a *tokenPages) clientID(v *visit, param, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	c, err := a.Clients.Clients.Find(v.r.Context(), text)
	if problem.IgnoreNotFound(err) != nil {
		return "", err
	}
	if err == nil && c.ProjectID == v.project.ID {
		return c.ID, nil
	}

	found, err := a.Clients.Clients.Search(v.r.Context(), v.project.ID, idp.ClientFilter{Text: text},
		page.Query{Size: page.MaxSize})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, c := range found.Items {
		if strings.EqualFold(c.Name, text) {
			ids = append(ids, c.ID)
		}
	}
	return clientNames.only(v, ids, found.Next != "", param, text)
}

// naming contains the messages for texts that do not name exactly one row of a kind.
type naming struct{ none, several, many string }

var addressNames = naming{
	none:    "%s is not an address of this project.",
	several: "%s names more than one address. Enter the id.",
	many:    "Too many names contain %s. Enter the id of the address.",
}

var clientNames = naming{
	none:    "%s is not an OAuth client of this project.",
	several: "%s names more than one OAuth client. Enter the id.",
	many:    "Too many names contain %s. Enter the id of the OAuth client.",
}

// unknown returns the error for a text that names no row.
func (n naming) unknown(v *visit, param, text string) error {
	return problem.BadParam(param, "%s", words.Textf(n.none, v.quote(text)))
}

// only returns the id that was found for a name. It returns an error if there is not exactly one
// id, or if more is set, which means that more rows may have the name.
func (n naming) only(v *visit, ids []string, more bool, param, name string) (string, error) {
	switch {
	case len(ids) > 1:
		return "", problem.BadParam(param, "%s", words.Textf(n.several, v.quote(name)))
	case more:
		return "", problem.BadParam(param, "%s", words.Textf(n.many, v.quote(name)))
	case len(ids) == 0:
		return "", n.unknown(v, param, name)
	}
	return ids[0], nil
}

// unknownSubscriber is a text that is never the id of a subscriber.
const unknownSubscriber = "nobody"

// subscriberID returns the id of the subscriber whose id, reference or email is the given text. For
// an unknown subscriber it returns unknownSubscriber or, if the text looks like an id, the text
// itself. Calls, recordings and events of a deleted subscriber can therefore still be found by the
// subscriber's id.
func (a *site) subscriberID(v *visit, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	ifUnknown, ctx := unknownSubscriber, v.r.Context()
	if uuid.MatchString(text) { // an id, or the reference of a backend whose references are UUIDs
		ifUnknown = strings.ToLower(text)
		_, err := a.Fabric.Subscribers.Find(ctx, v.project.ID, ifUnknown)
		if !errors.Is(err, problem.NotFound) {
			return ifUnknown, err
		}
	}
	s, err := a.Fabric.Subscribers.FindReferred(ctx, v.project.ID, text)
	if err != nil {
		return ifUnknown, problem.IgnoreNotFound(err)
	}
	return s.ID, nil
}

// offerResources replaces the input for the id of a handler with a list of resource names. If the
// project has too many resources for a list, the input suggests some of them.
func (a *resourcePages) offerResources(v *visit, f *form) error {
	in := cmp.Or(findInput(f.Inputs, "calling_handler_resource_id"), findInput(f.More, "calling_handler_resource_id"))
	if in == nil {
		return nil
	}
	found, err := a.findResources(v, "", "", suggestions)
	if err != nil {
		return err
	}
	var choices []choice
	for _, r := range found.Items {
		row := a.resourceRow(v, r)
		title := row.Title + " (" + v.say(row.Kind) + ")"
		choices = append(choices, choice{Value: r.ID, Title: title, Chosen: r.ID == in.Value})
	}

	isUnknown := in.Value != "" && findChoice(choices, in.Value).Title == in.Value
	if found.Next != "" || isUnknown {
		in.Suggestions = choices
		return nil
	}
	in.Kind = kindSelect
	in.Options = append([]choice{{Title: "–", Chosen: in.Value == ""}}, choices...)
	return nil
}
