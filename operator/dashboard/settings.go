package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// settingsPages serves the pages that show the installation to owners.
type settingsPages struct {
	*site
	Installation Installation
}

// An Installation provides owners with the data and actions that do not belong to a project. If one
// of its functions is nil, the page omits the section for it.
type Installation struct {
	Policies func() []Policy // returns the configuration

	Keys   func(ctx context.Context) ([]RingKey, error)
	Rotate func(ctx context.Context, use string) error // replaces the current key of a use with its next key

	Mailing *Mailing
	Backups *Backups

	// Examine runs the checks of `selvage doctor`. Findings returns their last results.
	Examine  func(ctx context.Context) []Finding
	Findings func() []Finding
}

// A Policy is one key of the configuration.
type Policy struct{ Group, Key, Value, Default, Means, Variable string }

// Shown returns the value to display. A duration that equals the default is formatted like the
// default.
func (p Policy) Shown() string {
	is, err := time.ParseDuration(p.Value)
	usual, err2 := time.ParseDuration(p.Default)
	if err == nil && err2 == nil && is == usual {
		return p.Default
	}
	return p.Value
}

// rank returns 0 if the value differs from the default, and otherwise 1.
func (p Policy) rank() int {
	if p.Shown() != p.Default {
		return 0
	}
	return 1
}

// A RingKey is a key that signs or encrypts tokens.
type RingKey struct {
	Kid, Use, State string

	Created time.Time
	Since   time.Time // when it became the current key; may be zero
}

// A Finding is the result of one check. Its texts come from package words.
type Finding struct {
	Group, Name, Found, Remedy string
	Status                     string // ok, warning, failed or skipped
}

// A settingsPage shows owners the installation.
type settingsPage struct {
	Keys    []ringRow
	Uses    []string
	Changed []Policy // settings that differ from their defaults
	Usual   []Policy // settings that equal their defaults
	Doctor  bool
	Faults  faults
}

type ringRow struct {
	RingKey
	Status status
}

// showSettings serves GET /dashboard/settings.
func (a *settingsPages) showSettings(v *visit) error { return a.settingsPage(v, http.StatusOK, nil) }

func (a *settingsPages) settingsPage(v *visit, code int, wrong faults) error {
	i := a.Installation
	p := settingsPage{Doctor: i.Examine != nil, Faults: wrong}

	if i.Keys != nil {
		all, err := i.Keys(v.r.Context())
		if err != nil {
			return err
		}
		for _, k := range all {
			p.Keys = append(p.Keys, ringRow{k, ringStates[k.State]})
			if !slices.Contains(p.Uses, k.Use) && k.State != "revoked" {
				p.Uses = append(p.Uses, k.Use)
			}
		}
	}

	for _, policy := range i.policies() {
		switch {
		case policy.Group == limitGroup: // limits have their own page
		case policy.Shown() == policy.Default:
			p.Usual = append(p.Usual, policy)
		default:
			p.Changed = append(p.Changed, policy)
		}
	}
	return a.page(v, code, "Settings", "settings", p)
}

// ringStates maps the states of keys to their labels.
var ringStates = map[string]status{
	"current": {"good", "In use"}, "next": {"", "Next"}, "retired": {"", "Verifies only"},
	"revoked": {"bad", "Revoked"},
}

// rotateRing serves POST /dashboard/settings/keys. It replaces the current key of a use with its
// next key.
func (a *settingsPages) rotateRing(v *visit) error {
	if a.Installation.Rotate == nil {
		return problem.NoSuch("page")
	}
	err := a.Installation.Rotate(v.r.Context(), v.form.Get("use"))
	if p := problem.First(err); p != nil && (p.Kind == problem.Conflict || p.Kind == problem.NotFound) {
		return a.settingsPage(v, http.StatusUnprocessableEntity, faultAt("keys", sentence(p.Message)))
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/settings?done=rotated")
}

// limitGroup is the section of the configuration that holds limits.
const limitGroup = "limits"

// policies returns the configuration, or nil if it is not shown.
func (i Installation) policies() []Policy {
	if i.Policies == nil {
		return nil
	}
	return i.Policies()
}

// showLimits serves GET /dashboard/limits. Limits that differ from their defaults come first.
func (a *settingsPages) showLimits(v *visit) error {
	limits := slices.DeleteFunc(a.Installation.policies(), func(p Policy) bool { return p.Group != limitGroup })
	slices.SortStableFunc(limits, func(p, q Policy) int { return cmp.Compare(p.rank(), q.rank()) })
	return a.page(v, http.StatusOK, "Limits", "limits", limits)
}

// A doctorPage shows the findings of the checks.
type doctorPage struct {
	Findings []findingRow
	Bad      int // number of findings that need attention
}

// showDoctor serves GET /dashboard/settings/doctor. It runs the checks immediately.
func (a *settingsPages) showDoctor(v *visit) error {
	if a.Installation.Examine == nil {
		return problem.NoSuch("page")
	}
	var p doctorPage
	for _, f := range a.Installation.Examine(v.r.Context()) {
		row := findingRow{
			Finding: f,
			Verdict: verdicts[f.Status],
			Page:    f.page(),
			Anchor:  f.anchor(),
		}
		if slices.ContainsFunc(p.Findings, func(r findingRow) bool { return r.Anchor == row.Anchor }) {
			row.Anchor = "" // an earlier finding of the same check has this anchor
		}
		if f.Status == "failed" || f.Status == "warning" {
			p.Bad++
		}
		p.Findings = append(p.Findings, row)
	}
	return a.page(v, http.StatusOK, "Doctor", "doctor", p)
}

// A findingRow is a row in the list of findings.
type findingRow struct {
	Finding
	Verdict status
	Page    string // page on which the finding is resolved; "" if the remedy is enough
	Anchor  string // id of the row
}

// findingPages maps checks, or else groups of checks, to the pages on which their findings are
// resolved.
var findingPages = map[string]string{
	"data: backups": Prefix + "/backups",
	"data: kinds":   Prefix + "/kinds",
	"keys: ring":    Prefix + "/settings#keys",
	"certificates":  "/docs/guides/https",
	"database":      "/docs/guides/databases",
	"sessions":      "/docs/guides/redis",
	"webhooks":      "/docs/guides/delivery",
	"calls":         "/docs/guides/calls",
}

// page returns the page on which the finding is resolved, or "".
func (f Finding) page() string {
	group := strings.ToLower(f.Group)
	return cmp.Or(findingPages[group+": "+f.Name], findingPages[group])
}

// resolvedAt returns the page of the dashboard on which the finding is resolved, or else its row on
// the page of the checks, which shows the remedy.
func (f Finding) resolvedAt() string {
	if page := f.page(); strings.HasPrefix(page, Prefix) {
		return page
	}
	return Prefix + "/settings/doctor#" + f.anchor()
}

// anchor returns the id of the finding's row on the page of the checks.
func (f Finding) anchor() string {
	return strings.ReplaceAll(strings.ToLower(f.Group+"-"+f.Name), " ", "-")
}

var verdicts = map[string]status{
	"ok": {"good", "OK"}, "warning": {"warn", "Warning"}, "failed": {"bad", "Failed"}, "skipped": {"", "Skipped"},
}

// A stylesPage shows each element of the pages in all themes, side by side.
type stylesPage struct {
	Themes []string
	Pages  bool // whether to show the login and account pages instead of the dashboard
}

// showStyles serves GET /dashboard/_styles, a page for developers. Only owners on the server's own
// machine may see it.
func (a *settingsPages) showStyles(v *visit) error {
	if !web.IsLocal(v.r) {
		return problem.NoSuch("page")
	}
	data := stylesPage{Themes: []string{"light", "dark"}, Pages: v.r.URL.Query().Get("of") == "pages"}
	f := templates.Frame{Title: "Styles", FormToken: a.formToken(v), Theme: web.Theme(v.r),
		Sheet: "dashboard.css"}
	if data.Pages {
		f.Sheet = "pages.css"
	}
	return templates.Write(v.w, templates.Dashboard{Page: "styles", Data: data, Frame: f},
		templates.Options{Scripts: true})
}
