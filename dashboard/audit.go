package dashboard

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// An eventRow is an event of the audit trail as it is listed.
type eventRow struct {
	audit.Event
	What, Who, Whom, More string
	Status                status
}

// actors are the words for who does something.
var actors = map[audit.ActorKind]string{
	audit.System: "The server", audit.CLI: "Command line", audit.Anonymous: "Somebody", audit.APIKey: "API key", audit.Client: "OAuth client",
	audit.Subscriber: "Subscriber", audit.Operator: "Operator",
}

func rowOf(e audit.Event) eventRow {
	row := eventRow{Event: e, What: e.Action, Who: actors[e.Actor.Kind], Whom: strings.ReplaceAll(e.Target.Kind, "_", " "), Status: status{"good", "Done"}}
	if e.Outcome == audit.Refused {
		row.Status = status{"bad", "Refused"}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		row.More += fmt.Sprintf("%s: %s\n", strings.ReplaceAll(name, "_", " "), e.Detail[name])
	}
	row.More = strings.TrimSpace(row.More)
	return row
}

// An auditFilter is what an address asks for.
type auditFilter struct{ Action, Outcome, Actor, Target, After, Before string }

func (v *visit) auditFilter() (f auditFilter, ask audit.Filter, wrong []string) {
	q := v.r.URL.Query()
	text := func(name string) string { return plainText(q.Get(name)) }
	f = auditFilter{text("action"), text("outcome"), text("actor"), text("target"), text("after"), text("before")}
	ask = audit.Filter{ProjectID: v.project.ID, Action: f.Action, Actor: f.Actor, Target: f.Target}
	if f.Outcome == string(audit.Done) || f.Outcome == string(audit.Refused) {
		ask.Outcome = audit.Outcome(f.Outcome)
	}
	for _, d := range []struct {
		text string
		into *time.Time
		more int
	}{{f.After, &ask.Since, 0}, {f.Before, &ask.Until, 1}} {
		if d.text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, d.text)
		if err != nil {
			wrong = append(wrong, "From and until are days, such as 2030-01-31.")
			continue
		}
		*d.into = at.AddDate(0, 0, d.more)
	}
	return f, ask, wrong
}

// listAudit serves GET /dashboard/projects/{project}/audit, and GET /dashboard/audit for
// the installation with all its projects.
func (a *API) listAudit(v *visit) error {
	p := struct {
		Events []eventRow
		Filter auditFilter
		Pager  pager
		All    bool
		Faults []string
	}{All: v.project.ID == ""}
	f, ask, wrong := v.auditFilter()
	p.Filter, p.Faults = f, wrong
	code := http.StatusOK
	if wrong != nil {
		code = http.StatusUnprocessableEntity
	} else {
		found, err := a.audit(v, ask, v.query())
		if err != nil {
			return err
		}
		p.Pager = v.pager(found.Prev, found.Next)
		for _, e := range found.Items {
			p.Events = append(p.Events, rowOf(e))
		}
	}
	return a.page(v, code, "Audit", "audit", p)
}

func (a *API) audit(v *visit, f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	if a.Audit == nil {
		return page.Page[audit.Event]{}, nil
	}
	return a.Audit(v.r.Context(), f, q)
}
