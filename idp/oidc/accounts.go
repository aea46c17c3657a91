package oidc

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// logins are those of a browser in a project that are live, the one in use first.
type logins struct {
	all   []idp.Session
	inUse bool // whether the first is in use, and not only there to be chosen
}

// loginsOf returns the browser's live logins in a project.
func (a *API) loginsOf(r *http.Request, projectID string) (l logins, err error) {
	b, err := a.browsers.Open(r)
	if err != nil {
		return l, err
	}
	for i, sid := range idp.ParseLogins(b.Value(projectID)) {
		s, err := a.BrowserSession(r.Context(), sid, projectID)
		if errors.Is(err, problem.Unauthenticated) {
			continue
		}
		if err != nil {
			return l, err
		}
		l.all = append(l.all, s)
		l.inUse = l.inUse || i == 0
	}
	if l.inUse {
		audit.As(r.Context(), audit.Subscriber, l.all[0].SubscriberID)
	}
	return l, nil
}

// answering returns the login that answers for a request: the one that was chosen for
// it, or that it means, else the one in use.
func (l logins) answering(req idp.AuthRequest) (s idp.Session, ok bool) {
	is := func(s idp.Session) bool { return s.ID == req.Chosen }
	switch {
	case req.Chosen != "":
	case req.Meant != nil:
		is = req.Means
	case l.inUse:
		return l.all[0], true
	default:
		return s, false
	}
	i := slices.IndexFunc(l.all, is)
	if i < 0 {
		return s, false
	}
	return l.all[i], true
}

// mayChoose reports whether somebody without the right login may be asked which of
// those there are it shall be.
func (l logins) mayChoose(req idp.AuthRequest) bool {
	return len(l.all) > 0 && (req.Has("select_account") || !l.inUse && req.Meant == nil)
}

// setLogin puts a login in use in its project, under a new cookie. It takes the place
// of another of the same subscriber, which lives on by its tokens until that one signs
// out here. Whoever is one too many is signed out.
func (a *API) setLogin(w http.ResponseWriter, r *http.Request, s idp.Session) error {
	l, err := a.loginsOf(r, s.ProjectID)
	if err != nil {
		return err
	}
	var ids idp.Logins
	for _, other := range l.all {
		if other.SubscriberID != s.SubscriberID {
			ids = append(ids, other.ID)
		}
	}
	used := ids.Use(s.ID)
	for _, other := range l.all {
		if other.SubscriberID == s.SubscriberID || slices.Contains(used, other.ID) {
			continue
		}
		err := a.endHeld(r, func(one idp.Session) bool {
			return one.ProjectID == s.ProjectID && one.SubscriberID == other.SubscriberID
		})
		if err != nil {
			return err
		}
	}
	b, err := a.browsers.Open(r)
	if err != nil {
		return err
	}
	b.Set(s.ProjectID, used.String())
	if err := b.Renew(w, r); err != nil {
		return err
	}
	return a.markDevice(w, r, s.ProjectID, s.SubscriberID, s.TwoFactors())
}

// markDevice has an account know the browser from now on, and as one where it has shown two
// factors if it has.
func (a *API) markDevice(w http.ResponseWriter, r *http.Request, projectID, subscriberID string, factors bool) error {
	sub, err := a.Subscribers.FindSubscriber(r.Context(), projectID, subscriberID)
	if errors.Is(err, problem.NotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	mark, kept := a.DeviceMark(a.cookies.Device(r), sub, factors)
	a.cookies.SetDevice(w, r, mark, kept)
	return nil
}

// markOf returns the digest of the mark of the browser of r, or "".
func (a *API) markOf(r *http.Request) string {
	mark := a.cookies.FlowOf(r)
	if mark == "" {
		return ""
	}
	return session.Digest(mark)
}

// held returns the logins of a browser that were not ended: those that its cookie holds,
// and those made in it whose place another has taken or whose cookie has expired.
func (a *API) held(r *http.Request) (all []idp.Session, err error) {
	if all, err = a.MadeIn(r.Context(), a.markOf(r)); err != nil {
		return nil, err
	}
	b, err := a.browsers.Open(r)
	if err != nil {
		return nil, err
	}
	for _, text := range b.Values() {
		for _, sid := range idp.ParseLogins(text) {
			if sid == "" || slices.ContainsFunc(all, func(s idp.Session) bool { return s.ID == sid }) {
				continue
			}
			s, err := a.FindSession(r.Context(), sid)
			if errors.Is(err, problem.Unauthenticated) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// endHeld ends those of the browser's logins that are meant.
func (a *API) endHeld(r *http.Request, meant func(idp.Session) bool) error {
	all, err := a.held(r)
	if err != nil {
		return err
	}
	var ids []string
	for _, s := range all {
		if meant(s) {
			ids = append(ids, s.ID)
		}
	}
	return a.EndSessions(r.Context(), ids...)
}

// tidy takes the logins out of a browser that were ended. Where that in use was, none
// is: somebody who has signed out is not to find out as whom else.
func (a *API) tidy(r *http.Request, b *web.Browser) {
	for projectID, text := range b.Values() {
		kept := idp.Logins{""}
		for i, sid := range idp.ParseLogins(text) {
			if _, err := a.BrowserSession(r.Context(), sid, projectID); errors.Is(err, problem.Unauthenticated) {
				continue
			}
			if i == 0 {
				kept[0] = sid
			} else {
				kept = append(kept, sid)
			}
		}
		b.Set(projectID, kept.String())
	}
}

// showAccounts serves GET /accounts?id=.
func (a *API) showAccounts(w http.ResponseWriter, r *http.Request) error {
	req, c, err := a.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	l, err := a.loginsOf(r, c.ProjectID)
	if err != nil {
		return err
	}
	page := templates.Accounts{ID: req.ID, App: a.appName(r, c, req), Host: req.Host()}
	for _, s := range l.all {
		sub, err := a.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
		if err != nil {
			return fmt.Errorf("finding subscriber: %w", err)
		}
		page.Accounts = append(page.Accounts,
			templates.Account{Login: session.Digest(s.ID), Name: sub.FullName(), Email: sub.Email})
	}
	if len(page.Accounts) == 0 { // they have ended meanwhile
		seeOther(w, "/login?id="+url.QueryEscape(req.ID))
		return nil
	}
	return a.write(w, r, page, templates.Options{FormAction: formAction(req.RedirectURI)})
}

// chooseAccount serves POST /accounts: the form of the page of accounts.
func (a *API) chooseAccount(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := a.flowForm(w, r)
	if err != nil {
		return err
	}
	l, err := a.loginsOf(r, c.ProjectID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.all, func(s idp.Session) bool { return session.Digest(s.ID) == form.Get("account") })
	if i < 0 {
		return errStale
	}
	s := l.all[i]
	if i > 0 || !l.inUse {
		if err := a.setLogin(w, r, s); err != nil {
			return err
		}
	}
	if req.Chosen = s.ID; req.Satisfied(s, a.Now()) || !req.Means(s) {
		return a.afterLogin(w, r, c, req, s)
	}
	sub, err := a.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
	if err != nil {
		return fmt.Errorf("finding subscriber: %w", err)
	}
	req.LoginHint = sub.Email
	return a.suspend(w, r, c, req, "/login")
}
