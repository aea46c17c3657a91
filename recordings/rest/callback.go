package rest

import (
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// A callback describes one delivery of a recording's status to its callback URL.
type callback struct {
	ID          string            `json:"id"`
	RecordingID string            `json:"recording_id"`
	Event       recordings.Status `json:"event"`
	URL         string            `json:"url"`
	Method      string            `json:"method"`
	Fields      map[string]string `json:"fields"` // without RecordingUrl
	State       deliver.State     `json:"state"`
	Attempts    int               `json:"attempts"`
	Status      *int              `json:"status"`
	Error       *string           `json:"error"`
	CreatedAt   time.Time         `json:"created_at"`
	NextAt      *time.Time        `json:"next_attempt_at"`
	EndedAt     *time.Time        `json:"ended_at"`
}

// describeCallback returns the document for a delivery.
func describeCallback(d recordings.Delivery) callback {
	c := callback{
		ID:          d.ID,
		RecordingID: d.Sid,
		Event:       d.Event,
		URL:         d.URL,
		Method:      d.Method,
		Fields:      make(map[string]string),
		State:       d.State,
		Attempts:    d.Attempts,
		CreatedAt:   seconds(d.Created),
		NextAt:      optionalTime(d.Due),
		EndedAt:     optionalTime(d.Ended),
	}
	fields, _ := url.ParseQuery(d.Fields) // cannot fail, because this program wrote them
	for name := range fields {
		c.Fields[name] = fields.Get(name)
	}

	if d.Status != 0 {
		c.Status = &d.Status
	}
	if d.Error != "" {
		c.Error = &d.Error
	}
	return c
}

func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// optionalTime returns nil for the zero time, so that JSON shows null.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = seconds(t)
	return &t
}

// listCallbacks serves GET /api/relay/rest/recordings/callbacks, newest first.
func (a *API) listCallbacks(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	asked, err := web.ReadPage(r.URL.Query())
	if err != nil {
		return err
	}

	state, err := deliver.ParseState(r.URL.Query().Get("state"))
	if err != nil {
		return err
	}

	found, err := a.c.Recordings.Callbacks().List(r.Context(), o.ProjectID, state, asked.Query)
	if err != nil {
		return err
	}
	return web.AnswerPage(w, r, asked, found, describeCallback, "state")
}

// redeliver serves POST /api/relay/rest/recordings/callbacks/{callback}/redeliver.
func (a *API) redeliver(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	d, err := a.c.Recordings.Callbacks().Redeliver(r.Context(), o.ProjectID, r.PathValue("callback"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, describeCallback(d))
}

// redeliverDead serves POST /api/relay/rest/recordings/callbacks/redeliver. It queues all dead
// letters of the project again.
func (a *API) redeliverDead(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	n, err := a.c.Recordings.Callbacks().RedeliverDead(r.Context(), o.ProjectID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, map[string]int{"redelivered": n})
}
