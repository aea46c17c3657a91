package server

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/doctor"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/operator/dashboard"
)

// installationPages implements the pages of the dashboard that concern the whole installation.
type installationPages struct{ *App }

// all returns the functions of every page.
func (p installationPages) all() dashboard.Installation {
	return dashboard.Installation{
		Policies: p.policies,
		Keys:     p.shownKeys,
		Rotate:   p.rotateUse,
		Mailing: &dashboard.Mailing{
			State: p.mailState,
			List:  p.letters,
			Retry: p.retryLetter,
			Test:  p.sendTest,
		},
		Backups:  backupRunner(p).shown(),
		Examine:  p.examine,
		Findings: p.findings,
	}
}

// policyGroups lists the sections of the configuration that the dashboard shows.
var policyGroups = []string{
	"limits",
	"password",
	"session",
	"operators",
	"tokens",
	"keys",
	"audit",
	"recordings",
	"mail",
}

// policies returns the settings in policyGroups, except secrets.
func (p installationPages) policies() (all []dashboard.Policy) {
	for _, s := range config.Settings() {
		group, _, ok := strings.Cut(s.Path, ".")
		if !ok || s.Secret || !slices.Contains(policyGroups, group) {
			continue
		}
		all = append(all, dashboard.Policy{
			Group:    group,
			Key:      s.Path,
			Value:    s.Show(p.Config),
			Default:  s.Default,
			Means:    s.Meaning,
			Variable: s.Env(),
		})
	}

	slices.SortStableFunc(all, func(x, y dashboard.Policy) int {
		return slices.Index(policyGroups, x.Group) - slices.Index(policyGroups, y.Group)
	})
	return all
}

// shownKeys returns the keys of the ring.
func (p installationPages) shownKeys(ctx context.Context) (all []dashboard.RingKey, err error) {
	records, err := p.Store.RingKeys(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		all = append(all, dashboard.RingKey{
			Kid:     r.Kid,
			Use:     string(r.Use),
			State:   string(r.State),
			Created: r.Created,
			Since:   r.Activated,
		})
	}
	return all, nil
}

// rotateUse rotates the keys whose use has this name.
func (p installationPages) rotateUse(ctx context.Context, name string) error {
	use := keys.Use(name)
	if !slices.Contains(keys.Uses(), use) {
		return problem.NoSuch("use")
	}
	_, err := p.Ring.Rotate(ctx, use, false)
	return err
}

// mailState returns how emails are sent.
func (p installationPages) mailState(context.Context) (m dashboard.MailState, err error) {
	sender := p.sender()
	m.From = strings.TrimSpace(sender.Name + " <" + sender.Address + ">")
	m.IsKept = p.Box != nil
	if m.IsKept && p.showsMailbox() {
		m.Box = p.Where.Public + "/dev/mail"
	}
	return m, nil
}

// letters lists the emails in a state.
func (p installationPages) letters(
	ctx context.Context, state string, q page.Query,
) (page.Page[dashboard.Letter], error) {
	found, err := p.Store.ListLetters(ctx, mail.State(state), q)
	if err != nil {
		return page.Page[dashboard.Letter]{}, err
	}
	shown := page.Page[dashboard.Letter]{Prev: found.Prev, Next: found.Next}
	for _, l := range found.Items {
		shown.Items = append(shown.Items, dashboard.Letter{
			ID:       l.ID,
			Kind:     string(l.Kind),
			To:       l.To,
			State:    string(l.State),
			Attempts: l.Attempts,
			Error:    l.Error,
			Created:  l.Created,
			Due:      l.Due,
		})
	}
	return shown, nil
}

// retryLetter sends an email again.
func (p installationPages) retryLetter(ctx context.Context, id string) error {
	_, err := p.Store.RetryLetter(ctx, id)
	return err
}

// sendTest sends a test email to an address.
func (p installationPages) sendTest(ctx context.Context, to string) error {
	draft := mail.Draft{Kind: mail.Test, To: to, Brand: mail.Brand{Name: "selvage"}}
	return p.Post.Deliver(ctx, uuid.NewString(), draft)
}

// examining ensures that only one examination runs at a time, because each opens databases and
// files.
var examining sync.Mutex

// examine looks for problems, as `selvage doctor` does on the machine of a running server.
func (p installationPages) examine(ctx context.Context) (all []dashboard.Finding) {
	examining.Lock()
	defer examining.Unlock()
	e := &doctor.Examination{Config: p.Config, Getenv: os.Getenv, Version: p.version}
	for _, f := range e.Examine(ctx) {
		all = append(all, dashboard.Finding{
			Group:  f.Group,
			Name:   f.Name,
			Found:  string(f.Found),
			Remedy: string(f.Remedy),
			Status: string(f.Status),
		})
	}

	if ctx.Err() == nil {
		p.examined.Store(&all)
	}
	return all
}

// findings returns the results of the last examination, or nil before the first one.
func (p installationPages) findings() []dashboard.Finding {
	if all := p.examined.Load(); all != nil {
		return *all
	}
	return nil
}

const (
	examineAfter = time.Minute   // until the first examination, enough to start even under load
	examineEvery = 6 * time.Hour // interval between examinations
)

// keepExamined examines the installation at intervals, so that pages can show what needs attention.
func (p installationPages) keepExamined(ctx context.Context) {
	next := time.NewTimer(examineAfter)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		p.examine(ctx)
		next.Reset(examineEvery)
	}
}
