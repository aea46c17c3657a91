package oidc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// These are the paths of logins and logouts with upstream providers.
const (
	upstreamPath       = "/login/upstream"
	upstreamLogoutPath = "/logout/upstream"
	linkPath           = "/login/link"
)

// offerUpstreams adds the project's upstream providers to the login page. It returns the form-action
// policy for their buttons.
func (si *signIn) offerUpstreams(r *http.Request, c idp.Client, req idp.AuthRequest,
	p *templates.Login) (targets []string, err error) {
	all, err := si.Upstreams.Offered(r.Context(), c.ProjectID)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if req.Link != nil && req.Link.UpstreamID == u.ID {
			p.Link = u.Name
			continue
		}
		p.Upstreams = append(p.Upstreams, templates.Upstream{ID: u.ID, Name: u.Name})
		targets = append(targets, formAction(u.Issuer)...)
	}
	return targets, nil
}

// beginUpstream serves POST /login/upstream, a button on the login page. It redirects to the
// provider. Each attempt counts against the limit of authorization requests, because the attempt is
// stored, and selvage may have to fetch the provider's discovery document.
func (si *signIn) beginUpstream(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := si.requestForm(w, r)
	if err != nil {
		return err
	}

	if err := si.Limits.PassNetwork(r.Context(), limit.AuthorizePerNetwork, web.Network(r)); err != nil {
		return err
	}
	u, err := si.Upstreams.Find(r.Context(), c.ProjectID, form.Get("upstream"))
	if errors.Is(err, problem.NotFound) || err == nil && !u.Enabled {
		return errStale
	}
	if err != nil {
		return err
	}

	to, err := si.rp.Begin(r.Context(), u, req)
	if err != nil {
		return si.upstreamFault(w, r, c, req, u, err)
	}
	seeOther(w, to)
	return nil
}

// finishUpstream serves GET /login/upstream/callback/{issuer...}, to which providers redirect:
//
//  1. The state names the attempt, and so the authorization request. The state is valid only once, and
//     only in the browser that began the request. The path must be the callback of the attempt's
//     provider.
//  2. The provider's response is verified.
//  3. The person is signed in, asked for a second factor, or asked to sign in to the account with the
//     same email, to link it.
func (si *signIn) finishUpstream(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if checkParams(q) != nil {
		return badRequest("error.parameters")
	}

	a, err := si.Upstreams.Take(r.Context(), q.Get("state"))
	if errors.Is(err, problem.NotFound) {
		return errStale
	}
	if err != nil {
		return err
	}

	req, c, err := si.resume(r, a.RequestID)
	if err != nil {
		return err
	}

	u, err := si.Upstreams.Find(r.Context(), a.ProjectID, a.UpstreamID)
	if errors.Is(err, problem.NotFound) || err == nil && (!u.Enabled || a.ProjectID != c.ProjectID) {
		return errStale
	}
	if err != nil {
		return err
	}

	if r.URL.EscapedPath() != u.Callback() {
		return si.upstreamFault(w, r, c, req, u, errOtherProvider)
	}
	id, idToken, err := si.rp.Finish(r.Context(), u, a, q)
	if err != nil {
		return si.upstreamFault(w, r, c, req, u, err)
	}
	s, err := si.Upstreams.LogIn(r.Context(), u, id, si.visitor(r))
	return si.enterUpstream(w, r, c, req, u, upstreamLogin{login: s, idToken: idToken, err: err})
}

// errOtherProvider is the error for a response whose state belongs to an attempt at another
// provider.
var errOtherProvider = problem.New(problem.Invalid, "upstream_failed", "another provider sent the response")

// An upstreamLogin is the result of [idp.Upstreams.LogIn], together with the ID token of the login.
type upstreamLogin struct {
	login   idp.Login
	idToken string
	err     error
}

// enterUpstream continues a request with the result of a login at u.
func (si *signIn) enterUpstream(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest,
	u idp.Upstream, l upstreamLogin) error {
	var unlinked *idp.Unlinked
	var more *idp.Unfinished
	switch {
	case errors.As(l.err, &unlinked):
		req.Link, req.LoginHint = &unlinked.Identity, unlinked.Identity.Email
		return si.flow.suspend(w, r, c, req, "/login")
	case errors.As(l.err, &more):
		req.Proof = &more.Proof
		if u.Logout {
			req.Proof.UpstreamID, req.Proof.IDToken = u.ID, l.idToken
		}
		return si.flow.suspend(w, r, c, req, factorPath)
	case l.err != nil:
		return si.upstreamFault(w, r, c, req, u, l.err)
	}

	if err := si.Upstreams.Remember(r.Context(), u, l.login, l.idToken); err != nil {
		return err
	}
	si.Observe("login_upstream")
	return si.flow.enter(w, r, c, req, l.login)
}

// upstreamFault shows the login page with the error of a login at u. The page still offers the
// other ways to sign in.
func (si *signIn) upstreamFault(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest,
	u idp.Upstream, err error) error {
	p := problem.First(err)
	if p == nil {
		return err
	}

	text, status := "upstream.failed", http.StatusBadGateway
	switch {
	case p.Kind == problem.RateLimited:
		page := templates.Login{Email: req.LoginHint, Error: si.throttled(w, r, p)}
		return si.loginPage(w, r, c, req, page, http.StatusTooManyRequests)
	case p == idp.ErrUpstreamUnknown:
		text, status = "upstream.unknown", http.StatusUnprocessableEntity
	case p == idp.ErrUpstreamEmail:
		text, status = "upstream.email", http.StatusUnprocessableEntity
	case p.Code == "upstream_refused":
		text, status = "upstream.denied", http.StatusUnprocessableEntity
	case p.Code != "upstream_failed":
		return err
	}

	si.Observe("upstream_refused")
	si.log.WarnContext(r.Context(), "signing in with an upstream provider", "request_id", web.RequestID(r.Context()),
		"upstream", u.ID, "issuer", u.Issuer, "error", err)
	page := templates.Login{Email: req.LoginHint, Error: si.words(r).Say(text, "Name", u.Name)}
	return si.loginPage(w, r, c, req, page, status)
}

// A linkStep is a request whose login may be linked with an identity at an upstream provider.
type linkStep struct {
	req      idp.AuthRequest
	client   idp.Client
	login    idp.Login
	upstream idp.Upstream

	// over is set if the login has ended, so that the person must sign in again. login and upstream are
	// not set then.
	over bool
}

// linkStepOf returns the link step of the request with this id.
func (si *signIn) linkStepOf(r *http.Request, id string) (linkStep, error) {
	req, c, err := si.resume(r, id)
	if err != nil {
		return linkStep{}, err
	}
	live, err := si.logins.live(r, c.ProjectID)
	if err != nil {
		return linkStep{}, err
	}
	if req.Link == nil || req.Chosen == "" {
		return linkStep{}, errStale
	}
	login, ok := live.answering(req)
	if !ok {
		return linkStep{req: req, client: c, over: true}, nil
	}
	if req.Means(login) && !req.Satisfied(login, si.Now()) {
		return linkStep{}, errStale // the person has chosen an older login instead of signing in
	}

	u, err := si.Upstreams.Find(r.Context(), c.ProjectID, req.Link.UpstreamID)
	if errors.Is(err, problem.NotFound) {
		return linkStep{}, errStale
	}
	if err != nil {
		return linkStep{}, err
	}
	return linkStep{req: req, client: c, login: login, upstream: u}, nil
}

// showLink serves GET /login/link?id=. It asks the person who has just signed in whether to link
// the account. If the account's email differs from the identity's, showLink continues the request
// without asking.
func (si *signIn) showLink(w http.ResponseWriter, r *http.Request) error {
	step, err := si.linkStepOf(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	if step.over {
		return backToLogin(w, step.req)
	}
	sub, err := si.Subscribers.FindSubscriber(r.Context(), step.login.ProjectID, step.login.SubscriberID)
	if err != nil {
		return err
	}
	if sub.Email != step.req.Link.Email {
		step.req.Link = nil
		return si.flow.afterLogin(w, r, step.client, step.req, step.login)
	}
	page := templates.LinkAccount{ID: step.req.ID, Provider: step.upstream.Name, Email: sub.Email}
	return si.write(w, r, page, templates.Options{FormAction: formAction(step.req.RedirectURI)})
}

// answerLink serves POST /login/link, the form on the page of showLink.
func (si *signIn) answerLink(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}

	step, err := si.linkStepOf(r, form.Get("id"))
	if err != nil {
		return err
	}
	if step.over {
		return backToLogin(w, step.req)
	}
	if form.Get("answer") == "yes" {
		err := si.Upstreams.Link(r.Context(), step.upstream, *step.req.Link, step.login)
		if errors.Is(err, problem.Conflict) {
			return errStale
		}
		if err != nil {
			return err
		}
	}
	step.req.Link = nil
	return si.flow.afterLogin(w, r, step.client, step.req, step.login)
}

// An upstreamReturn is where a person goes after signing out at an upstream provider. The session
// store keeps it under the state of the logout.
type upstreamReturn struct {
	To string `json:"to"` // "" means the page that says that the person is signed out
}

func upstreamReturnKey(state string) session.Key {
	return session.Key{Kind: "upstream-logout", ID: session.Digest(state)}
}

// upstreamLogout returns the URL that signs the browser out at the upstream provider of one of the
// ended logins. It returns "" if none of the logins needs this, or if the provider does not support
// it. Afterwards the provider redirects the browser back here, and finishUpstream redirects it to the
// URL in to. A failure is only logged, because the person is already signed out here.
func (lo *logout) upstreamLogout(r *http.Request, ended []string, to string) string {
	u, idToken, ok := lo.Upstreams.Forget(r.Context(), ended...)
	if !ok {
		return ""
	}

	leave, err := lo.beginUpstreamLogout(r.Context(), u, idToken, to)
	if err != nil {
		lo.log.WarnContext(r.Context(), "signing out of an upstream provider",
			"request_id", web.RequestID(r.Context()), "upstream", u.ID, "issuer", u.Issuer, "error", err)
		return ""
	}
	return leave
}

// beginUpstreamLogout returns the URL that signs the browser out at u, or "" if u does not support
// it. It stores the URL to which finishUpstream redirects.
func (lo *logout) beginUpstreamLogout(ctx context.Context, u idp.Upstream, idToken, to string) (string, error) {
	state := rand.Text()
	leave, err := lo.rp.LogoutURL(ctx, u, idToken, state)
	if err != nil || leave == "" {
		return "", err
	}
	value, err := json.Marshal(upstreamReturn{to})
	if err != nil {
		return "", err
	}
	return leave, lo.Sessions.Put(ctx, upstreamReturnKey(state), value, lo.Lifetimes().Request)
}

// finishUpstream serves GET /logout/upstream, to which providers redirect after a logout.
func (lo *logout) finishUpstream(w http.ResponseWriter, r *http.Request) error {
	var back upstreamReturn
	value, err := lo.Sessions.Take(r.Context(), upstreamReturnKey(r.URL.Query().Get("state")))
	if err != nil && !errors.Is(err, problem.NotFound) {
		return err
	}
	if err == nil {
		if err := json.Unmarshal(value, &back); err != nil {
			return err
		}
	}
	if _, err := url.Parse(back.To); back.To != "" && err == nil {
		seeOther(w, back.To)
		return nil
	}
	return lo.showLoggedOut(w, r, logoutRequest{}, nil, "")
}
