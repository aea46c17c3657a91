package dashboard

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/words"
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

// A CountsFunc returns the counts of a project since a day, oldest first.
type CountsFunc func(ctx context.Context, projectID string, from time.Time) ([]fabric.DailyCount, error)

// A homePage is the first page of a project.
type homePage struct {
	ID, API, Issuer, Name, Base string
	Frequent                    []hit // links to what operators do most
	Attention                   []attention
	Next                        *step // the first step that has not been done; nil if all have been done
	Steps                       []step
	Done                        int // number of steps that have been done
	Charts                      []chart
	Days                        []chartDay
	Health                      []Health
	Events                      []eventRow // the most recent events
	MayMake                     bool
}

// An attention is a matter that an operator should look at.
type attention struct {
	Status    status
	Text, URL string
	Finding   string // shown instead of Text: prose with commands in backticks
}

// home serves GET /dashboard/projects/{project}.
func (a *projectPages) home(v *visit) (err error) {
	p := homePage{
		ID: v.project.ID, API: a.PublicURL, Issuer: a.AuthURL + "/", Name: v.project.Name, Base: v.base(),
		MayMake: v.mayIn(operator.Write),
	}
	p.Frequent = a.frequentLinks(v)
	if a.Health != nil {
		p.Health = a.Health(v.r.Context())
	}
	if p.Attention, err = a.attention(v); err != nil {
		return err
	}
	if p.Charts, p.Days, err = a.charts(v); err != nil {
		return err
	}

	last, err := a.trail.audit(v, audit.Filter{ProjectID: v.project.ID}, page.Query{Size: 6})
	if err != nil {
		return err
	}

	if p.Events, err = a.trail.eventRows(v, last.Items); err != nil {
		return err
	}
	if p.MayMake {
		if p.Steps, err = a.steps(v); err != nil {
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

// attention returns the matters that need attention in a project and, for owners, in the
// installation.
func (a *projectPages) attention(v *visit) (all []attention, err error) {
	if v.operator.Check(operator.KeepOperators, "") == nil {
		if all, err = a.installationAttention(v); err != nil {
			return nil, err
		}
	}

	hooks, err := a.webhookAttention(v)
	if err != nil {
		return nil, err
	}
	all = append(all, hooks...)

	keys, err := a.Fabric.APIKeys.List(v.r.Context(), v.project.ID, page.Query{Size: page.DefaultSize})
	if err != nil {
		return nil, err
	}
	for _, k := range keys.Items {
		if left := k.Expires.Sub(v.now); k.Revoked.IsZero() && !k.Expires.IsZero() && left > 0 && left < expiresSoon {
			all = append(all, attention{Status: status{"warn", "API key expires soon"}, Text: k.Name,
				URL: v.base() + "/keys/" + k.ID})
		}
	}
	return all, nil
}

// maxFindings is the maximum number of matters of the installation that a home page shows.
const maxFindings = 4

// installationAttention returns the matters that need attention in the installation: emails that
// failed, and findings of the last checks.
func (a *projectPages) installationAttention(v *visit) (all []attention, err error) {
	if a.Installation.Mailing != nil {
		dead, err := a.Installation.Mailing.List(v.r.Context(), "dead", page.Query{Size: 1})
		if err != nil {
			return nil, err
		}
		for _, l := range dead.Items {
			all = append(all, attention{Status: status{"bad", "Mail not sent"}, Finding: l.Error,
				URL: Prefix + "/mails?state=dead"})
		}
	}
	if a.Installation.Findings == nil {
		return all, nil
	}

	for _, f := range a.Installation.Findings() {
		if (f.Status == "failed" || f.Status == "warning") && len(all) < maxFindings {
			check := v.say(f.Group) + ": " + v.say(f.Name)
			all = append(all, attention{Status: status{verdicts[f.Status].Kind, check}, Finding: f.Found,
				URL: f.resolvedAt()})
		}
	}
	return all, nil
}

// A chart shows one count for each of the last days.
type chart struct {
	Title       string
	Today, Span string // today's count, and the sum of all days
	Since       string // describes the time of Span
	Bars        []bar
}

// A bar is one day in a chart. Its numbers are in the units of the drawing.
type bar struct {
	X, Y, High int
	Text       string // the day and its count
}

// A chartDay is a row of the table with the numbers of all charts.
type chartDay struct {
	Day    string
	Counts []int64
}

// These are the number of days in a chart, and its sizes in the units of the drawing.
const (
	chartDays = 30
	barStep   = 5 // distance between the left edges of two bars; a bar is one unit narrower
	chartHigh = 40
)

// counted lists the counts that a home page shows as charts.
var counted = []struct {
	of    fabric.Counted
	title string
}{
	{fabric.CountedSignIns, "Sign-ins"}, {fabric.CountedActive, "Active subscribers"},
	{fabric.CountedTokens, "Tokens"}, {fabric.CountedCalls, "Ended calls"}, {fabric.CountedRecordings, "Recordings"},
}

// charts returns the charts of a project, and their numbers by day, newest first.
func (a *projectPages) charts(v *visit) (all []chart, days []chartDay, err error) {
	if a.Counts == nil {
		return nil, nil, nil
	}
	today := v.now.UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-chartDays)
	counts, err := a.Counts(v.r.Context(), v.project.ID, first)
	if err != nil {
		return nil, nil, err
	}

	by := make(map[fabric.Counted][]int64)
	monthly := int64(0)
	for _, c := range counts {
		i := int(c.Day.Sub(first) / (24 * time.Hour))
		if i < 0 || i >= chartDays {
			continue
		}
		if by[c.Of] == nil {
			by[c.Of] = make([]int64, chartDays)
		}
		by[c.Of][i] = c.N
		if c.Of == fabric.CountedMonthly && c.Day.Month() == today.Month() {
			monthly += c.N
		}
	}

	days = make([]chartDay, chartDays)
	for i := range days {
		days[i].Day = v.words().Format(today.AddDate(0, 0, -i), "2 Jan 2006")
	}

	for _, of := range counted {
		n := by[of.of]
		if n == nil {
			n = make([]int64, chartDays)
		}
		c := chartOf(v.words(), of.title, n, first)
		if of.of == fabric.CountedActive { // adding up the days would count people more than once
			c.Span, c.Since = v.words().Number(thousands(monthly)), "this month"
		}
		all = append(all, c)
		for i := range days {
			days[i].Counts = append(days[i].Counts, n[chartDays-1-i])
		}
	}
	return all, days, nil
}

// chartOf returns a chart of the counts of consecutive days. first is the first of these days.
func chartOf(w *words.Words, title string, n []int64, first time.Time) chart {
	c := chart{Title: title, Today: w.Number(thousands(n[len(n)-1])), Since: "in 30 days"}
	most, sum := int64(1), int64(0)
	for _, count := range n {
		most, sum = max(most, count), sum+count
	}

	c.Span = w.Number(thousands(sum))
	for i, count := range n {
		high := int(count * chartHigh / most)
		if count > 0 {
			high = max(high, 2)
		}
		c.Bars = append(c.Bars, bar{i * barStep, chartHigh - high, high,
			words.Textf("%s: %s", w.Format(first.AddDate(0, 0, i), "2 Jan"), w.Number(thousands(count)))})
	}
	return c
}

// thousands formats a number with a comma between groups of three digits.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
