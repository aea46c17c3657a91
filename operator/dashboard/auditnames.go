package dashboard

import (
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// maxNamed is how many actors or targets of a kind a name in a filter may mean.
const maxNamed = 20

// A finding is a kind of actors or targets that a name in a filter may mean.
type finding struct {
	kind string // the title of their pages
	find func(*visit, string, page.Query) (ids []string, more bool, err error)
}

// named returns the ids of everyone and everything that text names by an id, an email or a part of a
// name: operators and, on the page of a project, what the project has. It includes text itself,
// because the ids of commands and imported clients may be any text. cut lists the kinds of which
// there may be more than the returned ids.
func (a *auditPages) named(v *visit, text string) (ids, cut []string, err error) {
	ids = []string{text}
	if v.project.ID != "" { // use an index, because a search reads only some of many subscribers
		id, err := a.subscriberID(v, text)
		if err != nil {
			return nil, nil, err
		}
		if id != unknownSubscriber {
			ids = append(ids, id)
		}
		deleted, err := a.Fabric.Subscribers.DeletedNamed(v.r.Context(), v.project.ID, text, maxNamed+1)
		if err != nil {
			return nil, nil, err
		}
		if len(deleted) > maxNamed {
			deleted, cut = deleted[:maxNamed], []string{v.say("Deleted subscribers")}
		}
		ids = append(ids, deleted...)
	}
	if uuid.MatchString(text) {
		return ids, cut, nil
	}

	all := []finding{{"Operators", a.operatorsNamed}}
	if v.project.ID != "" {
		all = append(all, finding{"API keys", a.keysNamed}, finding{"OAuth clients", a.clientsNamed},
			finding{"Subscribers and resources", a.thingsNamed}, finding{"Webhooks", a.webhooksNamed})
	}

	for _, one := range all {
		found, more, err := one.find(v, text, page.Query{Size: maxNamed})
		if err != nil && problem.First(err) == nil { // the text may not be a valid search for this kind
			return nil, nil, err
		}
		ids = append(ids, found...)
		if more {
			cut = append(cut, v.say(one.kind))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), cut, nil
}

// cutText returns a sentence that names the kinds of which a filter does not cover all matches, or
// "" if the filter covers all matches.
func cutText(text string, cut []string) string {
	if len(cut) == 0 {
		return ""
	}
	return words.Textf("“%s” matches more names than the list covers: at most %s of a kind (%s). "+
		"Enter more of the name, an email or an id.", text, maxNamed, strings.Join(cut, ", "))
}

// addNamed restricts a filter to the actors or targets that text names. ids is a field of the
// filter.
func (a *auditPages) addNamed(v *visit, text string, ask *auditQuery, ids *[]string) (err error) {
	var cut []string
	if *ids, cut, err = a.named(v, text); err != nil {
		return err
	}
	if said := cutText(text, cut); said != "" {
		ask.cut = append(ask.cut, said)
	}
	return nil
}

// idsOf returns the ids of the rows of a page, and whether there are more rows.
func idsOf[T any](found page.Page[T], err error, id func(T) string) (ids []string, more bool, _ error) {
	for _, one := range found.Items {
		ids = append(ids, id(one))
	}
	return ids, found.Next != "", err
}

// operatorsNamed finds operators. On the page of a project, it does not search emails that the page
// does not show, so that nobody can find out these emails letter by letter.
func (a *auditPages) operatorsNamed(v *visit, text string, q page.Query) ([]string, bool, error) {
	filter := operator.Filter{Text: text, OnlyTitles: v.project.ID != ""}
	found, err := a.Operators.Search(v.r.Context(), filter, q)
	return idsOf(found, err, func(o operator.Operator) string { return o.ID })
}

func (a *auditPages) keysNamed(v *visit, text string, q page.Query) ([]string, bool, error) {
	found, err := a.Fabric.APIKeys.Search(v.r.Context(), v.project.ID, fabric.APIKeyFilter{Text: text}, q)
	return idsOf(found, err, func(k fabric.APIKey) string { return k.ID })
}

func (a *auditPages) clientsNamed(v *visit, text string, q page.Query) ([]string, bool, error) {
	found, err := a.Clients.Clients.Search(v.r.Context(), v.project.ID, idp.ClientFilter{Text: text}, q)
	return idsOf(found, err, func(c idp.Client) string { return c.ID })
}

// thingsNamed finds resources and subscribers.
func (a *auditPages) thingsNamed(v *visit, text string, q page.Query) ([]string, bool, error) {
	found, err := a.Fabric.Resources.Search(v.r.Context(), v.project.ID, fabric.ThingFilter{Text: text}, q)
	return idsOf(found, err, fabric.Thing.ID)
}

func (a *auditPages) webhooksNamed(v *visit, text string, q page.Query) ([]string, bool, error) {
	found, err := a.Fabric.Webhooks.Search(v.r.Context(), v.project.ID, text, q)
	return idsOf(found, err, func(w fabric.Webhook) string { return w.ID })
}
