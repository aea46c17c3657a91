package command

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
)

var subscriberView = cli.View[fabric.Subscriber]{
	ID:    func(s fabric.Subscriber) string { return s.ID },
	JSON:  func(s fabric.Subscriber) any { return newSubscriberJSON(s) },
	Facts: subscriberFacts(),
}

func subscriberFacts() []cli.Fact[fabric.Subscriber] {
	type fact = cli.Fact[fabric.Subscriber]
	facts := []fact{
		{Name: "ID", Value: func(s fabric.Subscriber) string { return s.ID }},
		{Name: "Project", Detail: true, Value: func(s fabric.Subscriber) string { return s.ProjectID }},
		{Name: "Email", Value: func(s fabric.Subscriber) string { return s.Email }},
		{Name: "Disabled", Value: func(s fabric.Subscriber) string { return cli.YesOnly(s.Disabled) }},
		{Name: "Reference", Value: func(s fabric.Subscriber) string { return s.Reference }},
		{Name: "Name", Value: fabric.Subscriber.FullName},
	}
	for _, f := range fabric.PersonFields[3:] { // the first three are the name, which is above
		facts = append(facts, fact{Name: f.Label, Detail: true, Value: func(s fabric.Subscriber) string {
			return *f.Text(&s.Person)
		}})
	}

	return append(facts, []fact{
		{Name: "Verified", Detail: true, Value: func(s fabric.Subscriber) string { return cli.YesNo(s.Verified) }},
		{Name: "Claims", Detail: true, Value: formatClaims},
		{Name: "Password", Detail: true, Value: func(s fabric.Subscriber) string {
			return cli.YesNo(s.PasswordHash != "")
		}},
		{Name: "Record calls", Detail: true, Value: func(s fabric.Subscriber) string { return string(s.RecordCalls) }},
		{Name: "Forward when busy", Detail: true, Value: func(s fabric.Subscriber) string { return s.Forwarding.Busy }},
		{Name: "Forward when unanswered", Detail: true, Value: func(s fabric.Subscriber) string {
			return s.Forwarding.NoAnswer
		}},
		{Name: "Created", Minor: true, Value: func(s fabric.Subscriber) string { return cli.FormatTime(s.Created) }},
		{Name: "Updated", Detail: true, Value: func(s fabric.Subscriber) string { return cli.FormatTime(s.Updated) }},
	}...)
}

// A subscriberJSON is a subscriber in JSON.
type subscriberJSON struct {
	ID        string `json:"id"`
	Email     string `json:"email"`
	ProjectID string `json:"project_id"`
	Reference string `json:"reference,omitempty"`
	fabric.Person
	Verified    bool                   `json:"email_verified"`
	Claims      *fabric.StandardClaims `json:"claims,omitempty"`
	HasPassword bool                   `json:"has_password"`
	Disabled    bool                   `json:"disabled"`
	RecordCalls fabric.RecordCalls     `json:"record_calls"`
	fabric.Forwarding
	Online      *bool    `json:"online,omitempty"` // only in show
	OnlineSince cli.Time `json:"online_since,omitempty"`
	CreatedAt   cli.Time `json:"created_at"`
	UpdatedAt   cli.Time `json:"updated_at"`
}

func newSubscriberJSON(s fabric.Subscriber) subscriberJSON {
	object := subscriberJSON{
		ID:          s.ID,
		Email:       s.Email,
		ProjectID:   s.ProjectID,
		Reference:   s.Reference,
		Person:      s.Person,
		Verified:    s.Verified,
		HasPassword: s.PasswordHash != "",
		Disabled:    s.Disabled,
		RecordCalls: s.RecordCalls,
		Forwarding:  s.Forwarding,
		CreatedAt:   cli.UTC(s.Created),
		UpdatedAt:   cli.UTC(s.Updated),
	}
	if s.Claims != (fabric.StandardClaims{}) {
		object.Claims = &s.Claims
	}
	return object
}

// formatClaims formats the claims that are not in the profile, one per line.
func formatClaims(s fabric.Subscriber) string {
	object, err := json.Marshal(s.Claims)
	if err != nil {
		return ""
	}
	var claims map[string]any
	if json.Unmarshal(object, &claims) != nil {
		return ""
	}

	var lines []string
	for name, value := range claims {
		text, isText := value.(string)
		if !isText {
			encoded, _ := json.Marshal(value) // the value was just decoded from JSON
			text = string(encoded)
		}
		lines = append(lines, name+": "+text)
	}
	slices.Sort(lines)
	return cli.Lines(lines)
}

// withPresence returns the view of a subscriber together with the subscriber's presence.
func withPresence(p fabric.Presence) cli.View[fabric.Subscriber] {
	online := p.Online()
	view := subscriberView
	view.JSON = func(s fabric.Subscriber) any {
		object := newSubscriberJSON(s)
		object.Online = &online
		object.OnlineSince = cli.UTC(p.Since)
		return object
	}

	view.Facts = append(slices.Clone(view.Facts), cli.Fact[fabric.Subscriber]{
		Name: "Online",
		Value: func(fabric.Subscriber) string {
			if !online {
				return "no"
			}
			return fmt.Sprintf("since %s, sockets: %d", cli.FormatTime(p.Since), p.Sockets)
		},
	})
	return view
}
