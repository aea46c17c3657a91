package dashboard

import (
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// maxNamed is the maximum number of actors or targets of each kind that a filter by name covers.
const maxNamed = 20

// A nameSearch finds the actors or targets of one kind by id, email or part of a name.
type nameSearch struct {
	kind string // name of the kind on the page, such as “API keys”
	find func(*visit, string, page.Query) (ids []string, more bool, err error)
}

// named returns the ids of the actors and targets that text identifies by id, email or part of a
// name. These are operators and, on the page of a project, also its subscribers (deleted ones only
// by their exact name), resources, API keys, OAuth clients and webhooks. A UUID is not searched for
// as a name. ids includes text itself, because the ids of commands and imported clients may be any
// text. cut lists the kinds that may have more matches than ids contains.
func (a *auditPages) named(v *visit, text string) (ids, cut []string, err error) {
	ids = []string{text}
	if v.project.ID != "" {
		// Find an exact id, reference or email through an index. The search below reads only a part of
		// a long list.
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
			deleted = deleted[:maxNamed]
			cut = []string{v.say("Deleted subscribers")}
		}
		ids = append(ids, deleted...)
	}
	if uuid.MatchString(text) {
		return ids, cut, nil
	}

	searches := []nameSearch{{kind: "Operators", find: a.operatorsNamed}}
	if v.project.ID != "" {
		searches = append(searches,
			nameSearch{kind: "API keys", find: a.keysNamed},
			nameSearch{kind: "OAuth clients", find: a.clientsNamed},
			nameSearch{kind: "Subscribers and resources", find: a.thingsNamed},
			nameSearch{kind: "Webhooks", find: a.webhooksNamed})
	}

	for _, one := range searches {
		found, more, err := one.find(v, text, page.Query{Size: maxNamed})
		if isNoMatch(err) {
			continue
		}
		if err != nil {
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

// cutText returns a sentence for the page that names the kinds in cut, or "" if cut is empty.
func cutText(text string, cut []string) string {
	if len(cut) == 0 {
		return ""
	}
	return words.Textf("“%s” matches more than %s names among: %s. Events of the other matches are "+
		"not listed. Enter more of the name, an email or an id.", text, maxNamed, strings.Join(cut, ", "))
}

// addNamed restricts a filter to the actors or targets that text names. ids points to the field
// Actors or Targets of ask, which addNamed sets.
func (a *auditPages) addNamed(v *visit, text string, ask *auditQuery, ids *[]string) error {
	found, cut, err := a.named(v, text)
	if err != nil {
		return err
	}
	*ids = found
	if said := cutText(text, cut); said != "" {
		ask.cut = append(ask.cut, said)
	}
	return nil
}

// idsOf returns the ids of the rows that a search returned, and whether there are more rows. err is
// the error of the search.
func idsOf[T any](found page.Page[T], err error, id func(T) string) ([]string, bool, error) {
	if err != nil {
		return nil, false, err
	}
	ids := make([]string, len(found.Items))
	for i, one := range found.Items {
		ids[i] = id(one)
	}
	return ids, found.Next != "", nil
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
