package dashboard

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// settingsPages show the installation to owners.
type settingsPages struct {
	*site
	Installation Installation
}

// An Installation is what owners see and do beyond projects. Each func may be nil: then
// there is no such thing here.
type Installation struct {
	Policies func() []Policy // what the configuration says

	Keys   func(ctx context.Context) ([]RingKey, error)
	Rotate func(ctx context.Context, use string) error // lets the next key of a use take over

	Mails    func(ctx context.Context) (MailState, error)
	TestMail func(ctx context.Context, to string) error // an error is told to the owner

	// Examine looks for what is wrong, as `selvage doctor` does.
	Examine func(ctx context.Context) []Finding
}

// A Policy is one key of the configuration.
type Policy struct{ Group, Key, Value, Default, Means, Variable string }

// Shown is the value as the default is written, where it is the same length of time.
func (p Policy) Shown() string {
	is, err := time.ParseDuration(p.Value)
	usual, err2 := time.ParseDuration(p.Default)
	if err == nil && err2 == nil && is == usual {
		return p.Default
	}
	return p.Value
}

// A RingKey is a key that signs or seals.
type RingKey struct {
	Kid, Use, State      string
	Created, Since, Over time.Time
}

// MailState tells how mails go.
type MailState struct {
	Way   string // where they are sent, in words
	From  string
	Box   string // where those are shown that are kept; "" where they are sent
	Dead  []DeadMail
	Waits int // how many are on their way, of the last fifty
}

// A DeadMail could not be sent.
type DeadMail struct {
	Kind, To, Why string
	Created       time.Time
}

// A Finding is one thing that was looked at.
type Finding struct {
	Group, Name, Found, Remedy string
	Status                     string // ok, warning, failed or skipped
}

// A settingsPage is what owners see of the installation.
type settingsPage struct {
	Keys     []keyOfRing
	Uses     []string
	Mail     *MailState
	To       string
	CanTest  bool
	Policies []Policy
	Doctor   bool
	Faults   []fault
}

type keyOfRing struct {
	RingKey
	Status status
}

// showSettings serves GET /dashboard/settings.
func (a *settingsPages) showSettings(v *visit) error { return a.settingsPage(v, http.StatusOK, nil) }

func (a *settingsPages) settingsPage(v *visit, code int, wrong []fault) error {
	i := a.Installation
	p := settingsPage{To: v.operator.Email, CanTest: i.TestMail != nil, Doctor: i.Examine != nil,
		Faults: wrong}
	if v.form != nil && v.form.Has("to") {
		p.To = v.form.Get("to")
	}
	if i.Keys != nil {
		all, err := i.Keys(v.r.Context())
		if err != nil {
			return err
		}
		for _, k := range all {
			p.Keys = append(p.Keys, keyOfRing{k, ringStates[k.State]})
			if !slices.Contains(p.Uses, k.Use) && k.State != "revoked" {
				p.Uses = append(p.Uses, k.Use)
			}
		}
	}
	if i.Mails != nil {
		m, err := i.Mails(v.r.Context())
		if err != nil {
			return err
		}
		p.Mail = &m
	}
	if i.Policies != nil {
		p.Policies = i.Policies()
	}
	return a.page(v, code, "Settings", "settings", p)
}

var ringStates = map[string]status{
	"current": {"good", "In use"}, "next": {"", "Next"}, "retired": {"", "Verifies what it made"},
	"revoked": {"bad", "Ended"},
}

// rotateRing serves POST /dashboard/settings/keys: the next key of a use takes over.
func (a *settingsPages) rotateRing(v *visit) error {
	if a.Installation.Rotate == nil {
		return problem.NoSuch("page")
	}
	err := a.Installation.Rotate(v.r.Context(), v.form.Get("use"))
	if p := problem.First(err); p != nil && (p.Kind == problem.Conflict || p.Kind == problem.NotFound) {
		return a.settingsPage(v, http.StatusUnprocessableEntity, []fault{{Text: sentence(p.Message), ID: "keys"}})
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/settings?done=rotated")
}

// testMail serves POST /dashboard/settings/mail: a mail is sent at once.
func (a *settingsPages) testMail(v *visit) error {
	if a.Installation.TestMail == nil {
		return problem.NoSuch("page")
	}
	to := v.form.Get("to")
	if err := fabric.CheckEmail("to", to); err != nil {
		return a.settingsPage(v, http.StatusUnprocessableEntity, []fault{{"That is no e-mail address.", "to"}})
	}
	if err := a.Installation.TestMail(v.r.Context(), fabric.NormalizeEmail(to)); err != nil {
		return a.settingsPage(v, http.StatusUnprocessableEntity,
			[]fault{{sentence("The mail was not taken: " + err.Error()), "to"}})
	}
	return v.redirect(Prefix + "/settings?done=mailed")
}

// showDoctor serves GET /dashboard/settings/doctor: it looks now.
func (a *settingsPages) showDoctor(v *visit) error {
	if a.Installation.Examine == nil {
		return problem.NoSuch("page")
	}
	p := struct {
		Findings []foundRow
		Bad      int
	}{}
	for _, f := range a.Installation.Examine(v.r.Context()) {
		row := foundRow{f, verdicts[f.Status]}
		if f.Status == "failed" || f.Status == "warning" {
			p.Bad++
		}
		p.Findings = append(p.Findings, row)
	}
	return a.page(v, http.StatusOK, "Doctor", "doctor", p)
}

type foundRow struct {
	Finding
	Verdict status
}

var verdicts = map[string]status{"ok": {"good", "Good"}, "warning": {"warn", "Warning"},
	"failed": {"bad", "Failed"}, "skipped": {"", "Skipped"}}

// A stylesPage shows each part of the pages, in themes side by side.
type stylesPage struct {
	Themes []string
	Pages  bool // those of sign-in and account, not those of the dashboard
}

// showStyles serves GET /dashboard/_styles, for who works on the pages: to an owner at
// the machine itself.
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
