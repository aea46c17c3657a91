package rest

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// An auditResponse is an event of the audit trail in responses.
type auditResponse struct {
	ID         string            `json:"id"`
	At         string            `json:"at"`
	ProjectID  string            `json:"project_id"`
	Action     string            `json:"action"`
	Outcome    audit.Outcome     `json:"outcome"`
	ActorKind  audit.ActorKind   `json:"actor_kind"`
	ActorID    string            `json:"actor_id"`
	TargetKind string            `json:"target_kind"`
	TargetID   string            `json:"target_id"`
	Address    string            `json:"address"`
	RequestID  string            `json:"request_id"`
	Detail     map[string]string `json:"detail"`
}

// showEvent converts an event of the audit trail for a response.
func showEvent(e audit.Event) auditResponse {
	body := auditResponse{
		ID:         e.ID,
		At:         iso(e.At),
		ProjectID:  e.ProjectID,
		Action:     e.Action,
		Outcome:    e.Outcome,
		ActorKind:  e.Actor.Kind,
		ActorID:    e.Actor.ID,
		TargetKind: e.Target.Kind,
		TargetID:   e.Target.ID,
		Address:    e.Address,
		RequestID:  e.RequestID,
		Detail:     e.Detail,
	}
	if body.Detail == nil {
		body.Detail = map[string]string{}
	}
	return body
}

// auditAPI serves the audit trail of a project.
type auditAPI struct{ audit *fabric.Audit }

func (a auditAPI) routes(by *credentials) []route {
	return []route{{"GET", "/api/fabric/audit", by.manager(a.list)}}
}

// list serves GET /api/fabric/audit.
func (a auditAPI) list(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	query := r.URL.Query()
	f := audit.Filter{
		ProjectID: by.ProjectID,
		Action:    query.Get("action"),
		Outcome:   audit.Outcome(query.Get("outcome")),
		Actor:     query.Get("actor_id"),
		Target:    query.Get("target_id"),
	}

	var errs []error
	if f.Outcome != "" && f.Outcome != audit.Done && f.Outcome != audit.Refused {
		errs = append(errs, problem.BadParam("outcome", "outcome must be done or refused"))
	}

	var err error
	f.Since, err = timeOf(query, "since")
	errs = append(errs, err)
	f.Until, err = timeOf(query, "until")
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err
	}

	return paged(w, r, func(q page.Query) (page.Page[audit.Event], error) {
		return a.audit.List(r.Context(), f, q)
	}, showEvent)
}

// timeOf returns the time in the query parameter name, or the zero time if there is no such parameter.
func timeOf(query url.Values, name string) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return at, problem.BadParam(name, "%s must be a time such as 2030-01-31T12:00:00Z", name)
	}
	return at, nil
}
