package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// auditPages serves the pages that list and export the audit trail.
type auditPages struct {
	*site
	trail       *trail
	subscribers *subscriberPages
	Clients     *idp.Provider
}

// An auditFilter holds the filter of an audit page, with the values from the URL. If the URL
// describes an action in words, Action is the name of that action.
type auditFilter struct{ Account, Action, Outcome, Actor, Target, After, Before string }

// isNarrow reports whether the filter has conditions other than the account and the action "login".
func (f auditFilter) isNarrow() bool {
	f.Account = ""
	return f != auditFilter{} && f != auditFilter{Action: "login"}
}

// auditFilter reads the filter from the URL. It fills in all of f even if a day is invalid.
func (v *visit) auditFilter() (f auditFilter, ask audit.Filter, err error) {
	q := v.r.URL.Query()
	text := func(name string) string { return plainText(q.Get(name)) }
	f = auditFilter{
		Account: cmp.Or(text("q"), text("account")),
		Action:  actionOf(v, text("action")),
		Outcome: text("outcome"),
		Actor:   text("actor"),
		Target:  text("target"),
		After:   text("after"),
		Before:  text("before"),
	}
	ask = audit.Filter{ProjectID: v.project.ID, Action: f.Action, Actor: f.Actor, Target: f.Target}
	if f.Outcome == string(audit.Done) || f.Outcome == string(audit.Refused) {
		ask.Outcome = audit.Outcome(f.Outcome)
	}
	ask.Since, ask.Until, err = parseDays(f.After, f.Before)
	return f, ask, err
}

// actionOf returns the action that a text describes, such as “Signed in”, or else the text itself.
func actionOf(v *visit, text string) string {
	for _, action := range audit.Actions() {
		for _, outcome := range []audit.Outcome{audit.Done, audit.Refused} {
			said := audit.Say(action, outcome)
			if strings.EqualFold(text, said) || strings.EqualFold(text, v.say(said)) {
				return action
			}
		}
	}
	return text
}

// An auditPage lists events of a project, or of the installation with all its projects.
type auditPage struct {
	Events []eventRow
	Finder finder
	Pager  pager
	Live   string
	All    bool // whether the page covers the installation with all its projects
	Quick  []quickLink
	ByName bool // whether the search is for a name instead of an email
	Narrow bool // whether filters other than the account and its logins may hide events

	// Cut holds a sentence for each name that has more matches than its filter covers.
	Cut []string

	// Person is the subscriber whose email was searched for. Hindrance describes what keeps this
	// person from signing in, or is "". Both are set only on the page of a project.
	Person    entity
	Hindrance string
}

// listAudit serves GET /dashboard/projects/{project}/audit, and GET /dashboard/audit for the
// installation with all its projects.
func (a *auditPages) listAudit(v *visit) error {
	filter, ask, err := a.auditQuery(v)
	p := auditPage{
		Finder: v.auditFinder(filter),
		All:    v.project.ID == "",
		Quick:  v.quickLinks(filter),
		Narrow: filter.isNarrow(),
		Cut:    ask.cut,
	}
	title := "Audit of this project"
	if p.All {
		title = "Audit of everything"
	}

	options := templates.Options{Status: http.StatusUnprocessableEntity, Connect: []string{"'self'"}}
	if err != nil {
		if !p.Finder.blame(err) {
			return err
		}
		return a.pageWith(v, options, title, "audit", p)
	}

	found, err := a.trail.audit(v, ask.Filter, v.query())
	if err != nil {
		return err
	}
	if ask.Anyone != nil {
		p.ByName = true
	} else if filter.Account != "" && !p.All {
		p.Person, p.Hindrance, err = a.subscribers.hindranceOf(v, ask.Target)
		if err != nil {
			return err
		}
	}

	p.Events, err = a.trail.eventRows(v, found.Items)
	if err != nil {
		return err
	}
	p.Pager = v.pager(found.Prev, found.Next)
	p.Live = liveURL(v, found.Items, func(e audit.Event) string { return e.ID })
	options.Status = http.StatusOK
	return a.pageWith(v, options, title, "audit", p)
}

// A quickLink leads to the events that a common filter finds.
type quickLink struct {
	Title, URL string
	Current    bool // whether the filter of the page includes this filter
}

// quickLinks returns links to the events of recent days, which keep the other filters, and links to
// the events about common subjects.
func (v *visit) quickLinks(f auditFilter) (links []quickLink) {
	day := func(offset int) string { return v.now.UTC().AddDate(0, 0, offset).Format(time.DateOnly) }
	for _, days := range []struct{ title, after, before string }{
		{"Today", day(0), day(0)},
		{"Yesterday", day(-1), day(-1)},
		{"Last 7 days", day(-6), day(0)},
	} {
		q := v.r.URL.Query()
		q.Del("from")
		q.Set("after", days.after)
		q.Set("before", days.before)
		links = append(links, quickLink{
			Title:   days.title,
			URL:     v.r.URL.Path + "?" + q.Encode(),
			Current: f.After == days.after && f.Before == days.before,
		})
	}

	subjects := projectSubjects
	if v.project.ID == "" {
		subjects = installationSubjects
	}
	for _, s := range subjects {
		q := url.Values{"action": {s.action}}
		if s.outcome != "" {
			q.Set("outcome", s.outcome)
		}
		links = append(links, quickLink{
			Title:   s.title,
			URL:     v.r.URL.Path + "?" + q.Encode(),
			Current: f.Action == s.action && f.Outcome == s.outcome,
		})
	}
	return links
}

// An auditSubject is a filter by action and outcome that operators often use.
type auditSubject struct{ title, action, outcome string }

var failedLogins = auditSubject{title: "Failed logins", action: "login", outcome: string(audit.Refused)}

var projectSubjects = []auditSubject{
	failedLogins,
	{title: "Tokens", action: "token"},
	{title: "API keys", action: "api_key"},
	{title: "Calls", action: "call"},
	{title: "Recordings", action: "recording"},
}

var installationSubjects = []auditSubject{
	failedLogins,
	{title: "Operators", action: "operator"},
	{title: "Projects", action: "project"},
	{title: "Keys of the installation", action: "ring"},
}

// auditFinder returns the search form of an audit page. Its search box takes the email of an
// account, or the name or id of an actor or a target.
func (v *visit) auditFinder(set auditFilter) finder {
	action := v.textFilter("action", "Action", "login")
	action.Suggestions = actionChoices()
	outcomes := []choice{{Value: string(audit.Done), Title: "Done"}, {Value: string(audit.Refused), Title: "Refused"}}
	f := v.finder("Name, email or id", "ada@example.com", "account",
		action,
		v.choiceFilter("outcome", "Outcome", "Any", outcomes),
		v.dayFilter("after", "From"),
		v.dayFilter("before", "Until"),
		v.textFilter("actor", "Actor", "name, email or id"),
		v.textFilter("target", "Target", "name, email or id"))
	f.Query = set.Account
	return f.exportable(v)
}

// An auditQuery is a filter of the audit trail. cut holds a sentence for each name in the filter
// that has more matches than the filter covers.
type auditQuery struct {
	audit.Filter
	cut []string
}

// auditQuery returns the filter from the URL. It replaces an email with the id of its account: a
// subscriber of the project or, on the page of the installation, an operator. It replaces a name
// with the ids of all actors and targets with that name.
func (a *auditPages) auditQuery(v *visit) (f auditFilter, ask auditQuery, err error) {
	f, ask.Filter, err = v.auditFilter()
	if err != nil {
		return f, ask, err
	}
	ask.Target = "" // it may be a name
	if f.Actor != "" {
		if err := a.byActor(v, f.Actor, &ask); err != nil {
			return f, ask, err
		}
	}
	if f.Target != "" {
		if err := a.addNamed(v, f.Target, &ask, &ask.Targets); err != nil {
			return f, ask, err
		}
	}

	if f.Account == "" {
		return f, ask, nil
	}
	if !strings.Contains(f.Account, "@") {
		return f, ask, a.byName(v, f.Account, &ask)
	}
	ask.Target, err = a.accountID(v, f.Account)
	return f, ask, err
}

// accountID returns the id of the account with an email: a subscriber of the project or, on the page
// of the installation, an operator. The id "nobody" finds no events.
func (a *auditPages) accountID(v *visit, email string) (string, error) {
	if v.project.ID != "" {
		return a.Clients.Attempts.AuditAccount(v.r.Context(), v.project.ID, email)
	}
	o, err := a.Operators.Find(v.r.Context(), email)
	if errors.Is(err, problem.NotFound) {
		return "nobody", nil
	}
	if err != nil {
		return "", err
	}
	return o.ID, nil
}

// byName restricts ask to the events of the actors and targets that text names. On the page of a
// project, it adds failed logins with text as the email.
func (a *auditPages) byName(v *visit, text string, ask *auditQuery) error {
	if err := a.addNamed(v, text, ask, &ask.Anyone); err != nil {
		return err
	}
	if v.project.ID == "" {
		return nil
	}
	account, err := a.Clients.Attempts.AuditAccount(v.r.Context(), v.project.ID, text)
	if err != nil {
		return err
	}
	ask.Anyone = append(ask.Anyone, account)
	return nil
}

// byActor restricts ask to the events of an operator, if text is an operator's email or id.
// Otherwise it restricts ask to the events of all actors that text names. For an operator, it also
// sets the kind, so that the store can use an index.
func (a *auditPages) byActor(v *visit, text string, ask *auditQuery) error {
	ask.Actor = ""
	o, err := a.Operators.Find(v.r.Context(), text)
	if err == nil {
		ask.Actor = o.ID
		ask.ActorKind = audit.Operator
		return nil
	}
	if !errors.Is(err, problem.NotFound) {
		return err
	}
	return a.addNamed(v, text, ask, &ask.Actors)
}

// actionChoices returns the actions that the filter suggests, with their titles.
func actionChoices() (choices []choice) {
	for _, action := range audit.Actions() {
		choices = append(choices, choice{Value: action, Title: audit.Say(action, audit.Done)})
	}
	return choices
}

// maxExported is the maximum number of events in one export.
const maxExported = 100_000

// exportAudit serves GET …/audit/export. It sends the events that match the filter as CSV, newest
// first. The names of actors and targets are those that the page shows.
func (a *auditPages) exportAudit(v *visit) error {
	_, ask, err := a.auditQuery(v)
	if err != nil {
		return err
	}
	if len(ask.cut) > 0 { // the file could not say that events are missing
		return problem.New(problem.Invalid, "too_many_matches", "%s", ask.cut[0])
	}
	list := func(q page.Query) (page.Page[eventRow], error) {
		found, err := a.trail.audit(v, ask.Filter, q)
		if err != nil {
			return page.Page[eventRow]{}, err
		}
		rows, err := a.trail.eventRows(v, found.Items)
		return page.Page[eventRow]{Items: rows, Next: found.Next, Prev: found.Prev}, err
	}

	return writeCSV(a.site, v, "audit", audit.NamedCSVHeader, list, func(e eventRow) []string {
		return e.NamedCSV(e.Who.exported(), e.Whom.exported())
	})
}
