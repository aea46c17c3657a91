package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// keepingRoutes returns the routes of the pages about tags, holds, retention and usage.
func (a *recordingPages) keepingRoutes() []route {
	return []route{
		{pattern: "POST /dashboard/projects/{project}/recordings/{sid}/mark", may: operator.Write,
			serve: a.markRecording},
		{pattern: "GET /dashboard/projects/{project}/recordings/usage", may: operator.Read,
			serve: a.showUsage, nav: "Usage", group: recorded},
		{pattern: "GET /dashboard/projects/{project}/recordings/usage/export", may: operator.Read,
			serve: a.exportUsage},
		{pattern: "GET /dashboard/projects/{project}/retention", may: operator.Read,
			serve: a.listRules, nav: "Retention", group: recorded},
		{pattern: "POST /dashboard/projects/{project}/retention", may: operator.Write, serve: a.addRule, once: true},
		{pattern: "POST /dashboard/projects/{project}/retention/{id}/remove", may: operator.Write,
			serve: a.removeRule, ends: true},
	}
}

// shownAccesses is how many accesses the page of a recording shows.
const shownAccesses = 20

// An accessRow is a row in the list of accesses to a recording.
type accessRow struct {
	recordings.Access
	Who, Size string
}

// accessesOf returns the latest accesses to a recording.
func (a *recordingPages) accessesOf(v *visit, sid string) (rows []accessRow, err error) {
	found, err := a.Recordings.ListAccesses(v.r.Context(), v.project.ID, sid, page.Query{Size: shownAccesses})
	if err != nil {
		return nil, err
	}
	named := a.trail.entities(v)
	for _, access := range found.Items {
		row := accessRow{Access: access, Who: "anyone with the link", Size: v.size(access.Bytes)}
		if access.Actor != recordings.Anyone {
			kind, id, _ := strings.Cut(access.Actor, ":")
			who, err := named(audit.Event{ProjectID: v.project.ID}, actorKinds[kind], id)
			if err != nil {
				return nil, err
			}
			row.Who = cmp.Or(who.Name, access.Actor)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// actorKinds maps the kinds of actors in accesses to recordings to the kinds of actors in audit
// events.
var actorKinds = map[string]string{"operator": "operator", "key": "api_key", "subscriber": "subscriber"}

// A ruleRow is a row in the list of retention rules.
type ruleRow struct {
	recordings.Rule
	Of, Keep string
}

// showRule returns the row of a rule. subscriber is the name of the rule's subscriber, if there is one.
func showRule(rule recordings.Rule, subscriber string) ruleRow {
	row := ruleRow{Rule: rule, Of: "All recordings", Keep: "Forever"}
	switch {
	case rule.Tag != "" && rule.SubscriberID != "":
		row.Of = words.Textf("Recordings of subscriber %s with the tag %s", subscriber, rule.Tag)
	case rule.Tag != "":
		row.Of = words.Textf("Recordings with the tag %s", rule.Tag)
	case rule.SubscriberID != "":
		row.Of = words.Textf("Recordings of subscriber %s", subscriber)
	}

	switch rule.Days {
	case 0:
	case 1:
		row.Keep = "1 day"
	default:
		row.Keep = words.Textf("%s days", rule.Days)
	}
	return row
}

// A retentionPage lists retention rules, and has a form that adds one.
type retentionPage struct {
	Rows       []ruleRow
	Base       string
	MayMake    bool
	Days       string // as typed, like the next two
	Tag        string
	Subscriber string
	Preview    string // describes what the rule in the form would delete; "" unless a preview was requested
	Faults     faults
}

// listRules serves GET /dashboard/projects/{project}/retention.
func (a *recordingPages) listRules(v *visit) error {
	return a.retentionPage(v, http.StatusOK, retentionPage{})
}

func (a *recordingPages) retentionPage(v *visit, code int, p retentionPage) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	rules, err := a.Recordings.Retention().List(v.r.Context(), v.project.ID)
	if err != nil {
		return err
	}

	p.Base = v.base()
	p.MayMake = v.mayIn(operator.Write)
	for _, rule := range rules {
		subscriber, err := a.subscriberTitle(v, rule.SubscriberID)
		if err != nil {
			return err
		}
		p.Rows = append(p.Rows, showRule(rule, subscriber))
	}
	return a.page(v, code, "Retention", "retention", p)
}

// subscriberTitle returns the title of a rule's subscriber, or the id if the rule has outlived the
// subscriber.
func (a *recordingPages) subscriberTitle(v *visit, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, id)
	if isMissing(err) {
		return id, nil
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(s.Title(), id), nil
}

// subscriberNamed returns the id of the subscriber whose email, reference or id is the given text.
func (a *recordingPages) subscriberNamed(v *visit, text string) (string, error) {
	text = strings.TrimSpace(text)
	s, err := a.Fabric.Subscribers.FindReferred(v.r.Context(), v.project.ID, text)
	if errors.Is(err, problem.NotFound) {
		s, err = a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, text)
	}
	if isMissing(err) {
		return "", problem.BadParam("subscriber", "the project has no subscriber with this email or reference")
	}
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// addRule serves POST /dashboard/projects/{project}/retention. The button Preview only counts the
// recordings that the rule would delete.
func (a *recordingPages) addRule(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	p := retentionPage{Days: v.form.Get("days"), Tag: v.form.Get("tag"), Subscriber: v.form.Get("subscriber")}
	days, err := strconv.Atoi(p.Days)
	if err != nil {
		p.Faults = faultAt("days", "The number of days must be a whole number. 0 means forever.")
		return a.retentionPage(v, http.StatusUnprocessableEntity, p)
	}

	rule := recordings.Rule{ProjectID: v.project.ID, Days: days, Tag: p.Tag}
	if p.Subscriber != "" {
		rule.SubscriberID, err = a.subscriberNamed(v, p.Subscriber)
	}
	isPreview := v.form.Get("do") == "preview"
	if err == nil && isPreview {
		p.Preview, err = a.previewRule(v, &rule)
	} else if err == nil {
		_, err = a.Recordings.Retention().Add(v.r.Context(), rule)
	}

	if wrong, ok := describeFaults(err, "days", "tag", "subscriber"); ok {
		p.Faults = wrong
		return a.retentionPage(v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	if isPreview {
		return a.retentionPage(v, http.StatusOK, p)
	}
	return v.redirect(v.base() + "/retention?done=ruleadded")
}

// previewRule describes what a rule would delete.
func (a *recordingPages) previewRule(v *visit, rule *recordings.Rule) (string, error) {
	v.preview = true
	expired, err := a.Recordings.Retention().Preview(v.r.Context(), v.project.ID, rule)
	if err != nil {
		return "", err
	}
	return words.Textf("With this rule, %s recordings (%s) would be deleted now.",
		v.words().Number(thousands(expired.Recordings)), cmp.Or(v.size(expired.Bytes), "0 B")), nil
}

// removeRule serves POST /dashboard/projects/{project}/retention/{id}/remove.
func (a *recordingPages) removeRule(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	if err := a.Recordings.Retention().Delete(v.r.Context(), v.project.ID, v.r.PathValue("id")); err != nil {
		return err
	}
	return v.redirect(v.base() + "/retention?done=ruleremoved")
}
