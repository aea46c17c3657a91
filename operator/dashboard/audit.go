package dashboard

import (
	"cmp"
	"encoding/csv"
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// auditPages list and export the audit trail.
type auditPages struct {
	*site
	trail   *trail
	Clients *idp.Provider
}

// An auditFilter is what an address asks for.
type auditFilter struct{ Account, Action, Outcome, Actor, Target, After, Before string }

// Any reports whether it asks for something.
func (f auditFilter) Any() bool { return f != auditFilter{} }

func (v *visit) auditFilter() (f auditFilter, ask audit.Filter, wrong []string) {
	q := v.r.URL.Query()
	text := func(name string) string { return plainText(q.Get(name)) }
	f = auditFilter{text("account"), text("action"), text("outcome"), text("actor"), text("target"),
		text("after"), text("before")}
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
func (a *auditPages) listAudit(v *visit) error {
	p := struct {
		Events  []eventRow
		Filter  auditFilter
		Actions []choice
		Pager   pager
		Export  string
		Live    string
		Base    string
		All     bool
		Faults  []string
	}{All: v.project.ID == "", Export: v.r.URL.Path + "/export?" + v.r.URL.RawQuery, Base: v.base()}
	f, ask, wrong, err := a.auditQuery(v)
	if err != nil {
		return err
	}
	p.Filter, p.Faults, p.Actions = f, wrong, actionChoices()
	title := "Audit of this project"
	if p.All {
		title, p.Base = "Audit of everything", Prefix
	}
	code := http.StatusOK
	if wrong != nil {
		code = http.StatusUnprocessableEntity
	} else {
		found, err := a.trail.audit(v, ask, v.query())
		if err != nil {
			return err
		}
		p.Pager = v.pager(found.Prev, found.Next)
		if p.Events, err = a.trail.eventRows(v, found.Items); err != nil {
			return err
		}
		p.Live = liveURL(v, found.Items, func(i audit.Event) string { return i.ID })
	}
	return a.pageWith(v, templates.Options{Status: code, Connect: []string{"'self'"}}, title, "audit", p)
}

// auditQuery returns what an address asks for, with the account of an e-mail found: of a
// subscriber, or for the installation of an operator.
func (a *auditPages) auditQuery(v *visit) (auditFilter, audit.Filter, []string, error) {
	f, ask, wrong := v.auditFilter()
	if f.Actor != "" { // what operators did is found at once
		o, err := a.Operators.Find(v.r.Context(), f.Actor)
		if ignoreNotFound(err) != nil {
			return f, ask, wrong, err
		}
		if err == nil && o.ID == f.Actor {
			ask.ActorKind = audit.Operator
		}
	}
	if f.Account == "" {
		return f, ask, wrong, nil
	}
	if v.project.ID == "" {
		o, err := a.Operators.Find(v.r.Context(), f.Account)
		ask.Target = cmp.Or(o.ID, "nobody")
		return f, ask, wrong, ignoreNotFound(err)
	}
	var err error
	ask.Target, err = a.Clients.Attempts.AuditAccount(v.r.Context(), v.project.ID, f.Account)
	return f, ask, wrong, err
}

// actionChoices are what a filter proposes: the names of actions, with their words.
func actionChoices() (all []choice) {
	for _, action := range audit.Actions() {
		all = append(all, choice{Value: action, Title: audit.Say(action, audit.Done)})
	}
	return all
}

// maxExported bounds the events of one file.
const maxExported = 100_000

// exportAudit serves GET …/audit/export: the events of a filter as CSV, the newest first.
func (a *auditPages) exportAudit(v *visit) error {
	_, ask, wrong, err := a.auditQuery(v)
	if err != nil {
		return err
	}
	if wrong != nil {
		return problem.BadParam("after", "%s", strings.TrimSuffix(wrong[0], "."))
	}
	found, err := a.trail.audit(v, ask, page.Query{Size: page.MaxSize})
	if err != nil {
		return err
	}
	web.NoStore(v.w)
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="audit.csv"`)
	h.Set("X-Content-Type-Options", "nosniff")
	out := csv.NewWriter(v.w)
	_ = out.Write(audit.CSVHeader) // the browser may have gone, here and below
	for n := 0; ; {
		for _, e := range found.Items {
			_ = out.Write(e.CSV())
		}
		out.Flush()
		if n += len(found.Items); out.Error() != nil || found.Next == "" || n >= maxExported {
			return nil
		}
		if found, err = a.trail.audit(v, ask, page.Query{Size: page.MaxSize, From: found.Next}); err != nil {
			web.LogInternal(v.r, a.Log, err)
			panic(http.ErrAbortHandler) // the file must not look whole
		}
	}
}

func (a *trail) audit(v *visit, f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	if a.Audit == nil {
		return page.Page[audit.Event]{}, nil
	}
	return a.Audit(v.r.Context(), f, q)
}
