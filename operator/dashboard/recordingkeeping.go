package dashboard

import (
	"cmp"
	"encoding/csv"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
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
			serve: a.removeRule},
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
	named := a.trail.entities(v)
	for _, c := range found.Items {
		row := accessRow{Access: c, Who: "anyone with the link", Size: v.size(c.Bytes)}
		if c.Actor != recordings.Anyone {
			kind, id, _ := strings.Cut(c.Actor, ":")
			who, err := named(audit.Event{ProjectID: v.project.ID}, actorKinds[kind], id)
			if err != nil {
				return nil, err
			}
			row.Who = cmp.Or(who.Name, c.Actor)
		}
		rows = append(rows, row)
	}
	return rows, err
}

// actorKinds maps the kinds of actors in accesses to recordings to the kinds of actors in audit
// events.
var actorKinds = map[string]string{"operator": "operator", "key": "api_key", "subscriber": "subscriber"}

// A ruleRow is a row in the list of retention rules.
type ruleRow struct {
	recordings.Rule
	Of, Keep string
}

// showRule returns the row of a rule. named is the name of the rule's subscriber, if it has one.
func showRule(u recordings.Rule, named string) ruleRow {
	row := ruleRow{Rule: u, Of: "All recordings", Keep: "Forever"}
	switch {
	case u.Tag != "" && u.SubscriberID != "":
		row.Of = words.Textf("Recordings of subscriber %s with the tag %s", named, u.Tag)
	case u.Tag != "":
		row.Of = words.Textf("Recordings with the tag %s", u.Tag)
	case u.SubscriberID != "":
		row.Of = words.Textf("Recordings of subscriber %s", named)
	}

	switch u.Days {
	case 0:
	case 1:
		row.Keep = "1 day"
	default:
		row.Keep = words.Textf("%s days", u.Days)
	}
	return row
}

// A retentionPage lists retention rules, and has a form that adds one.
type retentionPage struct {
	Rows                  []ruleRow
	Base                  string
	MayMake               bool
	Days, Tag, Subscriber string
	Preview               string // describes what the rule in the form would delete; "" unless a preview was requested
	Faults                faults
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

	p.Base, p.MayMake = v.base(), v.mayIn(operator.Write)
	for _, u := range rules {
		named := u.SubscriberID
		if named != "" {
			s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, named)
			if err != nil && !isMissing(err) { // a rule may outlive its subscriber
				return err
			}
			named = cmp.Or(s.Title(), named)
		}
		p.Rows = append(p.Rows, showRule(u, named))
	}
	return a.page(v, code, "Retention", "retention", p)
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
	return s.ID, err
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

	u := recordings.Rule{ProjectID: v.project.ID, Days: days, Tag: p.Tag}
	if p.Subscriber != "" {
		u.SubscriberID, err = a.subscriberNamed(v, p.Subscriber)
	}
	if wrong, ok := describeFaults(err, "days", "tag", "subscriber"); ok {
		p.Faults = wrong
		return a.retentionPage(v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}

	var sum recordings.Expiry
	if v.form.Get("do") == "preview" {
		v.preview = true
		sum, err = a.Recordings.Retention().Preview(v.r.Context(), v.project.ID, &u)
		p.Preview = words.Textf("With this rule, %s recordings (%s) would be deleted now.",
			v.words().Number(thousands(sum.Recordings)), cmp.Or(v.size(sum.Bytes), "0 B"))
	} else {
		_, err = a.Recordings.Retention().Add(v.r.Context(), u)
	}

	if wrong, ok := describeFaults(err, "days", "tag", "subscriber"); ok {
		p.Faults, p.Preview = wrong, ""
		return a.retentionPage(v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	if p.Preview != "" {
		return a.retentionPage(v, http.StatusOK, p)
	}
	return v.redirect(v.base() + "/retention?done=ruleadded")
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

// usageDays returns the usage of each of the last 30 days, and the first of these days.
func (a *recordingPages) usageDays(v *visit) (all []recordings.Usage, first time.Time, err error) {
	if a.Recordings == nil {
		return nil, first, problem.NoSuch("page")
	}
	today := v.now.UTC().Truncate(24 * time.Hour)
	first = today.AddDate(0, 0, 1-chartDays)
	found, err := a.Recordings.Usage(v.r.Context(), v.project.ID, first, today.AddDate(0, 0, 1))
	all = make([]recordings.Usage, chartDays)
	for i := range all {
		all[i].Day = first.AddDate(0, 0, i)
	}

	for _, u := range found {
		if i := int(u.Day.Sub(first) / (24 * time.Hour)); i >= 0 && i < len(all) {
			all[i] = u
		}
	}
	return all, first, err
}

// A usageRow is a row in the table of usage.
type usageRow struct{ Day, Recordings, Minutes, Uploaded, Stored, Price string }

// newUsageRow formats the usage of a day, or a sum, in the visitor's language.
func newUsageRow(v *visit, u recordings.Usage) usageRow {
	w := v.words()
	return usageRow{
		Recordings: w.Number(thousands(u.Recordings)), Minutes: w.Number(thousands((u.Seconds + 30) / 60)),
		Uploaded: cmp.Or(v.size(u.Bytes), "0 B"), Stored: cmp.Or(v.size(u.Stored), "0 B"),
		Price: w.Number(strconv.FormatFloat(float64(u.Price)/1e6, 'f', 4, 64) + " USD"),
	}
}

// showUsage serves GET /dashboard/projects/{project}/recordings/usage.
func (a *recordingPages) showUsage(v *visit) error {
	all, first, err := a.usageDays(v)
	if err != nil {
		return err
	}

	p := struct {
		Base   string
		Total  usageRow
		Quota  string
		Charts []chart
		Rows   []usageRow
	}{Base: v.base(), Total: newUsageRow(v, recordings.SumUsage(all))}
	terms, stored, err := a.Recordings.Stored(v.r.Context(), v.project.ID)
	if err != nil {
		return err
	}

	p.Quota = cmp.Or(v.size(stored), "0 B")
	if terms.Quota > 0 {
		p.Quota = words.Textf("%s of %s", cmp.Or(v.size(stored), "0 B"), v.size(terms.Quota))
	}

	for _, of := range []struct {
		title string
		n     func(recordings.Usage) int64
	}{
		{"Recordings", func(u recordings.Usage) int64 { return u.Recordings }},
		{"Minutes", func(u recordings.Usage) int64 { return (u.Seconds + 30) / 60 }},
		{"Megabytes", func(u recordings.Usage) int64 { return (u.Bytes + 5e5) / 1e6 }},
	} {
		counts := make([]int64, len(all))
		for i, u := range all {
			counts[i] = of.n(u)
		}
		p.Charts = append(p.Charts, chartOf(v.words(), of.title, counts, first))
	}

	for i := len(all) - 1; i >= 0; i-- {
		row := newUsageRow(v, all[i])
		row.Day = v.words().Format(all[i].Day, "2 Jan 2006")
		p.Rows = append(p.Rows, row)
	}
	return a.page(v, http.StatusOK, "Usage", "recording_usage", p)
}

// exportUsage serves GET /dashboard/projects/{project}/recordings/usage/export, as CSV.
func (a *recordingPages) exportUsage(v *visit) error {
	all, _, err := a.usageDays(v)
	if err != nil {
		return err
	}

	web.NoStore(v.w)
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	rows := [][]string{{"day", "recordings", "seconds", "bytes", "stored_bytes", "price_usd"}}
	for _, u := range all {
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		rows = append(rows, []string{u.Day.Format(time.DateOnly), number(u.Recordings), number(u.Seconds),
			number(u.Bytes), number(u.Stored), strconv.FormatFloat(float64(u.Price)/1e6, 'f', 6, 64)})
	}
	_ = csv.NewWriter(v.w).WriteAll(rows) // the browser may have disconnected
	return nil
}
