package fabric

import (
	"encoding/json"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
)

// KindOf returns the kind of a resource. If an operator defined the kind and its file no longer
// exists, the returned kind has no members of its own.
func (rs *Resources) KindOf(r Resource) *kinds.Kind {
	if k := rs.c.Kinds.ByType(r.Type); k != nil {
		return k
	}
	return &kinds.Kind{Title: r.Type, Meta: kinds.Meta{Type: r.Type, Key: r.Type}}
}

// Document formats a resource for lists of several kinds. The result has the common members, and
// the resource's own members under the key of its kind.
func Document(k *kinds.Kind, r Resource) json.RawMessage {
	own := []kinds.Member{kinds.Text("id", r.ID)}
	if k.Flat {
		own = []kinds.Member{kinds.Text("type", r.Type), kinds.Text("id", r.ID)}
	}
	all := []kinds.Member{
		kinds.Text("id", r.ID), kinds.Text("project_id", r.ProjectID), kinds.Text("display_name", r.DisplayName),
	}
	if k.EnvelopeName {
		all = append(all, kinds.Text("name", r.DisplayName))
	}
	return kinds.Object(append(all, kinds.Text("type", r.Type), kinds.Text("created_at", moment(r.Created)),
		kinds.Text("updated_at", moment(r.Updated)),
		kinds.Member{Name: k.Key, Value: k.Document(own, r.Fields)}))
}

// FlatDocument formats a resource with its own members at the top level.
func FlatDocument(k *kinds.Kind, r Resource) json.RawMessage {
	return k.Document([]kinds.Member{kinds.Text("type", r.Type), kinds.Text("id", r.ID)}, r.Fields)
}

// moment formats a time as the API does (RFC 3339, seconds, UTC).
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// A SubscriberDocument is a subscriber in the API's format, without the password and the reference.
type SubscriberDocument struct {
	ID          string         `json:"id"`
	ProjectID   string         `json:"project_id"`
	DisplayName string         `json:"display_name"`
	Type        string         `json:"type"`
	CreatedAt   string         `json:"created_at"`
	UpdatedAt   string         `json:"updated_at"`
	Subscriber  SubscriberBody `json:"subscriber"`
}

// A SubscriberBody contains the subscriber's own members.
type SubscriberBody struct {
	ID          string      `json:"id"`
	Email       string      `json:"email"`
	FirstName   string      `json:"first_name"`
	LastName    string      `json:"last_name"`
	DisplayName string      `json:"display_name"`
	JobTitle    string      `json:"job_title"`
	TimeZone    string      `json:"timezone"`
	Country     string      `json:"country"`
	CompanyName string      `json:"company_name"`
	RecordCalls RecordCalls `json:"record_calls"`

	ForwardBusy     string `json:"forward_busy"`
	ForwardNoAnswer string `json:"forward_no_answer"`
	RingSeconds     int    `json:"ring_seconds"`
}

// DocumentOf formats a subscriber for lists of several kinds.
func DocumentOf(s Subscriber) SubscriberDocument {
	return SubscriberDocument{
		ID:          s.ID,
		ProjectID:   s.ProjectID,
		DisplayName: s.Title(),
		Type:        "subscriber",
		CreatedAt:   moment(s.Created),
		UpdatedAt:   moment(s.Updated),
		Subscriber: SubscriberBody{
			ID:              s.ID,
			Email:           s.Email,
			FirstName:       s.FirstName,
			LastName:        s.LastName,
			DisplayName:     s.DisplayName,
			JobTitle:        s.JobTitle,
			TimeZone:        s.TimeZone,
			Country:         s.Country,
			CompanyName:     s.CompanyName,
			RecordCalls:     s.RecordCalls,
			ForwardBusy:     s.Forwarding.Busy,
			ForwardNoAnswer: s.Forwarding.NoAnswer,
			RingSeconds:     s.Forwarding.RingSeconds,
		},
	}
}
