package rest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// A rule is a retention rule.
type rule struct {
	ID           string    `json:"id"`
	Tag          *string   `json:"tag"`
	SubscriberID *string   `json:"subscriber_id"`
	Days         int       `json:"days"`
	CreatedAt    time.Time `json:"created_at"`
}

// showRule returns the document for a rule.
func showRule(u recordings.Rule) rule {
	return rule{
		ID:           u.ID,
		Tag:          optional(u.Tag),
		SubscriberID: optional(u.SubscriberID),
		Days:         u.Days,
		CreatedAt:    seconds(u.Created),
	}
}

// optional returns nil for the empty string, so that JSON shows null.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// listRules serves GET /api/relay/rest/recordings/retention, oldest first.
func (a *API) listRules(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	rules, err := a.c.Recordings.Retention().List(r.Context(), o.ProjectID)
	if err != nil {
		return err
	}
	docs := make([]rule, len(rules))
	for i, u := range rules {
		docs[i] = showRule(u)
	}
	return web.JSON(w, http.StatusOK, map[string]any{"data": docs})
}

// addRule serves POST /api/relay/rest/recordings/retention.
func (a *API) addRule(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	in, err := web.Decode[struct {
		Tag          string `json:"tag"`
		SubscriberID string `json:"subscriber_id"`
		Days         *int   `json:"days"`
	}](r)
	if err != nil {
		return err
	}
	if in.Days == nil {
		return problem.Missing("days")
	}

	added, err := a.c.Recordings.Retention().Add(r.Context(), recordings.Rule{
		ProjectID:    o.ProjectID,
		Tag:          in.Tag,
		SubscriberID: in.SubscriberID,
		Days:         *in.Days,
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, showRule(added))
}

// removeRule serves DELETE /api/relay/rest/recordings/retention/{rule}.
func (a *API) removeRule(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := a.c.Recordings.Retention().Delete(r.Context(), o.ProjectID, r.PathValue("rule")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// previewRules serves GET /api/relay/rest/recordings/retention/preview.
func (a *API) previewRules(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	q := r.URL.Query()
	var more *recordings.Rule
	if text := q.Get("days"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil {
			return problem.BadParam("days", "days must be an integer")
		}
		more = &recordings.Rule{
			ProjectID:    o.ProjectID,
			Tag:          q.Get("tag"),
			SubscriberID: q.Get("subscriber_id"),
			Days:         days,
		}
	}

	sum, err := a.c.Recordings.Retention().Preview(r.Context(), o.ProjectID, more)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]int64{"recordings": sum.Recordings, "bytes": sum.Bytes})
}
