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

// logins holds a browser's live logins in a project. If there is a current login, it comes first.
type logins struct {
	all   []idp.Login
	inUse bool // whether there is a current login, which is the first one
}

// browserLogins reads and changes the list of logins that a browser holds.
type browserLogins struct{ *pages }

// live returns the browser's live logins in a project.
func (bl *browserLogins) live(r *http.Request, projectID string) (l logins, err error) {
	b, err := bl.browsers.Open(r)
	if err != nil {
		return l, err
	}

	for i, sid := range idp.ParseBrowserLogins(b.Value(projectID)) {
		s, err := bl.Logins.FindInBrowser(r.Context(), sid, projectID)
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

// answering returns the login that can answer a request. It is the login that the person chose, or
// a login of the subscriber whom the request names. If nobody was chosen or named, it is the
// current login.
func (l logins) answering(req idp.AuthRequest) (s idp.Login, ok bool) {
	matches := func(s idp.Login) bool { return s.ID == req.Chosen }
	switch {
	case req.Chosen != "":
	case req.Meant != nil:
		matches = req.Means
	case l.inUse:
		return l.all[0], true
	default:
		return s, false
	}

	i := slices.IndexFunc(l.all, matches)
	if i < 0 {
		return s, false
	}
	return l.all[i], true
}

// mayChoose reports whether the person may be asked to choose one of the logins.
func (l logins) mayChoose(req idp.AuthRequest) bool {
	return len(l.all) > 0 && (req.Has("select_account") || !l.inUse && req.Meant == nil)
}

// use makes s the current login in its project and renews the browser's cookie. s replaces another
// login of the same subscriber in the list. The replaced login's tokens remain valid until the
// subscriber signs out in this browser. Logins beyond the maximum number are ended.
func (bl *browserLogins) use(w http.ResponseWriter, r *http.Request, s idp.Login) error {
	l, err := bl.live(r, s.ProjectID)
	if err != nil {
		return err
	}
	var ids idp.BrowserLogins
	for _, other := range l.all {
		if other.SubscriberID != s.SubscriberID {
			ids = append(ids, other.ID)
		}
	}

	// End the logins that exceed the maximum, and other logins of the same subscribers.
	used := ids.Use(s.ID)
	for _, other := range l.all {
		if other.SubscriberID == s.SubscriberID || slices.Contains(used, other.ID) {
			continue
		}
		_, err := bl.end(r, func(one idp.Login) bool {
			return one.ProjectID == s.ProjectID && one.SubscriberID == other.SubscriberID
		})
		if err != nil {
			return err
		}
	}

	b, err := bl.browsers.Open(r)
	if err != nil {
		return err
	}
	b.Set(s.ProjectID, used.String())
	if err := b.Renew(w, r); err != nil {
		return err
	}
	bl.writeBrowserState(w, r, b)
	return bl.markDevice(w, r, s.ProjectID, s.SubscriberID, s.TwoFactors())
}

// markDevice sets a mark in the browser, by which the subscriber's account recognizes the browser.
// If factors is set, the mark also records that the browser had a login with two factors.
func (bl *browserLogins) markDevice(w http.ResponseWriter, r *http.Request, projectID,
	subscriberID string, factors bool) error {
	sub, err := bl.Subscribers.FindSubscriber(r.Context(), projectID, subscriberID)
	if errors.Is(err, problem.NotFound) {
		return nil // deleted in the meantime
	}
	if err != nil {
		return err
	}
	mark, kept := bl.DeviceMarks.Mark(bl.cookies.Device(r), sub, factors)
	bl.cookies.SetDevice(w, r, mark, kept)
	return nil
}

// browserMark returns the digest of the browser's mark, or "" if it has none.
func (pg *pages) browserMark(r *http.Request) string {
	mark := pg.cookies.FlowOf(r)
	if mark == "" {
		return ""
	}
	return session.Digest(mark)
}

// all returns the browser's logins that have not ended. These are the logins in its cookie, and
// logins made in it whose cookie has expired or that another login has replaced.
func (bl *browserLogins) all(r *http.Request) (all []idp.Login, err error) {
	if all, err = bl.Logins.MadeIn(r.Context(), bl.browserMark(r)); err != nil {
		return nil, err
	}

	b, err := bl.browsers.Open(r)
	if err != nil {
		return nil, err
	}

	for _, text := range b.Values() {
		for _, sid := range idp.ParseBrowserLogins(text) {
			if sid == "" || slices.ContainsFunc(all, func(s idp.Login) bool { return s.ID == sid }) {
				continue
			}

			s, err := bl.Logins.Find(r.Context(), sid)
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

// end ends those of the browser's logins for which meant returns true. It returns their ids.
func (bl *browserLogins) end(r *http.Request, meant func(idp.Login) bool) (ids []string, err error) {
	all, err := bl.all(r)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if meant(s) {
			ids = append(ids, s.ID)
		}
	}
	return ids, bl.Logins.End(r.Context(), ids...)
}

// removeEnded removes ended logins from a browser. If the current login has ended, no other login
// becomes the current one. A person who signs out must not silently become somebody else.
func (bl *browserLogins) removeEnded(r *http.Request, b *web.Browser) {
	for projectID, text := range b.Values() {
		kept := idp.BrowserLogins{""}
		for i, sid := range idp.ParseBrowserLogins(text) {
			if _, err := bl.Logins.FindInBrowser(r.Context(), sid, projectID); errors.Is(err, problem.Unauthenticated) {
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
func (si *signIn) showAccounts(w http.ResponseWriter, r *http.Request) error {
	req, c, err := si.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}

	l, err := si.logins.live(r, c.ProjectID)
	if err != nil {
		return err
	}

	page := templates.Accounts{ID: req.ID, App: si.appName(r, c, req), Host: req.Host()}
	for _, s := range l.all {
		sub, err := si.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
		if err != nil {
			return fmt.Errorf("finding subscriber: %w", err)
		}
		page.Accounts = append(page.Accounts,
			templates.Account{Login: session.Digest(s.ID), Name: sub.FullName(), Email: sub.Email})
	}

	if len(page.Accounts) == 0 { // all logins have ended in the meantime
		seeOther(w, "/login?id="+url.QueryEscape(req.ID))
		return nil
	}
	return si.write(w, r, page, templates.Options{FormAction: formAction(req.RedirectURI)})
}

// chooseAccount serves POST /accounts, the form on the page of showAccounts.
func (si *signIn) chooseAccount(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := si.requestForm(w, r)
	if err != nil {
		return err
	}

	l, err := si.logins.live(r, c.ProjectID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.all, func(s idp.Login) bool { return session.Digest(s.ID) == form.Get("account") })
	if i < 0 {
		return errStale
	}

	s := l.all[i]
	if i > 0 || !l.inUse {
		if err := si.logins.use(w, r, s); err != nil {
			return err
		}
	}
	req.Chosen = s.ID
	if req.Satisfied(s, si.Now()) || !req.Means(s) {
		return si.flow.afterLogin(w, r, c, req, s)
	}

	// The chosen login is too old for the request, so the person must sign in again.
	sub, err := si.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
	if err != nil {
		return fmt.Errorf("finding subscriber: %w", err)
	}
	req.LoginHint = sub.Email
	return si.flow.suspend(w, r, c, req, "/login")
}
