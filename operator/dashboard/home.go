package dashboard

import (
	"context"
	"net/http"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// projectPages serves the home page and the settings of a project, and the list of projects.
type projectPages struct {
	*site
	trail        *trail
	Clients      *idp.Provider
	Recordings   *recordings.Recordings         // nil if the server keeps no recordings
	Health       func(context.Context) []Health // nil hides all states
	Counts       CountsFunc                     // nil hides the charts
	Installation Installation
}

// A CountsFunc returns the daily counts of a project, oldest first, beginning with the day of from.
type CountsFunc func(ctx context.Context, projectID string, from time.Time) ([]fabric.DailyCount, error)

// A homePage is the first page of a project.
type homePage struct {
	ID        string
	API       string // URL of the API
	Issuer    string
	Name      string
	Base      string
	Frequent  []hit // links to what operators do most
	Attention []attention
	Next      *step // the first step that has not been done; nil if all have been done
	Steps     []step
	Done      int // number of steps that have been done
	Charts    []chart
	Days      []chartDay
	Health    []Health
	Events    []eventRow // the most recent events
	MayMake   bool
}

// An attention is a matter that an operator should look at.
type attention struct {
	Status  status
	Text    string
	URL     string
	Finding string // shown instead of Text: prose with commands in backticks
}

// home serves GET /dashboard/projects/{project}.
func (a *projectPages) home(v *visit) (err error) {
	p := homePage{
		ID:       v.project.ID,
		API:      a.PublicURL,
		Issuer:   a.AuthURL + "/",
		Name:     v.project.Name,
		Base:     v.base(),
		MayMake:  v.mayIn(operator.Write),
		Frequent: a.frequentLinks(v),
	}
	if a.Health != nil {
		p.Health = a.Health(v.r.Context())
	}
	p.Attention, err = a.attention(v)
	if err != nil {
		return err
	}
	p.Charts, p.Days, err = a.charts(v)
	if err != nil {
		return err
	}

	last, err := a.trail.audit(v, audit.Filter{ProjectID: v.project.ID}, page.Query{Size: 6})
	if err != nil {
		return err
	}
	p.Events, err = a.trail.eventRows(v, last.Items)
	if err != nil {
		return err
	}
	if p.MayMake {
		p.Steps, err = a.steps(v)
		if err != nil {
			return err
		}
	}

	for i, s := range p.Steps {
		if s.Done {
			p.Done++
		} else if p.Next == nil {
			p.Next = &p.Steps[i]
		}
	}
	return a.page(v, http.StatusOK, v.project.Name, "home", p)
}

// expiresSoon is how long before its expiry an API key needs attention.
const expiresSoon = 14 * 24 * time.Hour

// maxKeys is the maximum number of keys about which a home page warns. It warns about the keys that
// expire first.
const maxKeys = 4

// attention returns the matters that need attention in a project and, for owners, in the
// installation.
func (a *projectPages) attention(v *visit) (matters []attention, err error) {
	if v.operator.Check(operator.KeepOperators, "") == nil {
		matters, err = a.installationAttention(v)
		if err != nil {
			return nil, err
		}
	}

	hooks, err := a.webhookAttention(v)
	if err != nil {
		return nil, err
	}
	matters = append(matters, hooks...)

	keys, err := a.Fabric.APIKeys.Expiring(v.r.Context(), v.project.ID, v.now, v.now.Add(expiresSoon), maxKeys)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		matters = append(matters, attention{
			Status: status{Kind: "warn", Word: "API key expires soon"},
			Text:   k.Name,
			URL:    v.base() + "/keys/" + k.ID,
		})
	}
	return matters, nil
}

// maxFindings is the maximum number of matters of the installation that a home page shows.
const maxFindings = 4

// installationAttention returns the matters that need attention in the installation: emails that
// failed, and findings of the last checks.
func (a *projectPages) installationAttention(v *visit) (matters []attention, err error) {
	if a.Installation.Mailing != nil {
		dead, err := a.Installation.Mailing.List(v.r.Context(), "dead", page.Query{Size: 1})
		if err != nil {
			return nil, err
		}
		for _, letter := range dead.Items {
			matters = append(matters, attention{
				Status:  status{Kind: "bad", Word: "Mail not sent"},
				Finding: letter.Error,
				URL:     Prefix + "/mails?state=dead",
			})
		}
	}
	if a.Installation.Findings == nil {
		return matters, nil
	}

	for _, f := range a.Installation.Findings() {
		if (f.Status == "failed" || f.Status == "warning") && len(matters) < maxFindings {
			check := v.say(f.Group) + ": " + v.say(f.Name)
			matters = append(matters, attention{
				Status:  status{Kind: verdicts[f.Status].Kind, Word: check},
				Finding: f.Found,
				URL:     f.resolvedAt(),
			})
		}
	}
	return matters, nil
}
