package command

import (
	"encoding/json"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"slices"
)

// A printedSubscriber is a subscriber for programs.
type printedSubscriber struct {
	ID          string                 `json:"id"`
	Email       string                 `json:"email"`
	ProjectID   string                 `json:"project_id"`
	Reference   string                 `json:"reference,omitempty"`
	FirstName   string                 `json:"first_name,omitempty"`
	LastName    string                 `json:"last_name,omitempty"`
	DisplayName string                 `json:"display_name,omitempty"`
	JobTitle    string                 `json:"job_title,omitempty"`
	TimeZone    string                 `json:"time_zone,omitempty"`
	Country     string                 `json:"country,omitempty"`
	CompanyName string                 `json:"company_name,omitempty"`
	Region      string                 `json:"region,omitempty"`
	Verified    bool                   `json:"email_verified"`
	Claims      *fabric.StandardClaims `json:"claims,omitempty"`
	HasPassword bool                   `json:"has_password"`
	Disabled    bool                   `json:"disabled"`
	Online      *bool                  `json:"online,omitempty"` // where it is shown alone
	OnlineSince cli.Time               `json:"online_since,omitempty"`
	CreatedAt   cli.Time               `json:"created_at"`
	UpdatedAt   cli.Time               `json:"updated_at"`
}

func printSubscriber(s fabric.Subscriber) printedSubscriber {
	printed := printedSubscriber{
		ID: s.ID, Email: s.Email, ProjectID: s.ProjectID, Reference: s.Reference, FirstName: s.FirstName,
		LastName:    s.LastName,
		DisplayName: s.DisplayName, JobTitle: s.JobTitle, TimeZone: s.TimeZone, Country: s.Country,
		CompanyName: s.CompanyName, Region: s.Region,
		Verified: s.Verified, HasPassword: s.PasswordHash != "", Disabled: s.Disabled,
		CreatedAt: cli.UTC(s.Created), UpdatedAt: cli.UTC(s.Updated),
	}
	if s.Claims != (fabric.StandardClaims{}) {
		printed.Claims = &s.Claims
	}
	return printed
}

// otherClaims returns the claims beside the profile, a line each.
func otherClaims(s fabric.Subscriber) string {
	raw, err := json.Marshal(s.Claims)
	var said map[string]any
	if err != nil || json.Unmarshal(raw, &said) != nil {
		return ""
	}
	var all []string
	for name, value := range said {
		if _, isText := value.(string); !isText {
			raw, _ := json.Marshal(value) // it was just read
			value = string(raw)
		}
		all = append(all, fmt.Sprintf("%s: %s", name, value))
	}
	slices.Sort(all)
	return cli.Lines(all)
}

// withPresence returns the view of a subscriber of whom it is known whether it is
// online.
func withPresence(p fabric.Presence) cli.View[fabric.Subscriber] {
	v, online := subscribers, p.Online()
	v.JSON = func(s fabric.Subscriber) any {
		printed := printSubscriber(s)
		printed.Online, printed.OnlineSince = &online, cli.UTC(p.Since)
		return printed
	}
	v.Facts = append(slices.Clone(v.Facts),
		cli.Fact[fabric.Subscriber]{Name: "Online", Value: func(fabric.Subscriber) string {
			if !online {
				return "no"
			}
			return fmt.Sprintf("since %s, sockets: %d", cli.FormatTime(p.Since), p.Sockets)
		}})
	return v
}
