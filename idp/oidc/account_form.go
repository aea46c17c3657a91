package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// An accountHandler serves a form of the account page that was sent in the visit v. If the subscriber
// must first sign in again, the handler returns errAgain or problem.Unauthenticated.
type accountHandler func(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error

// These errors keep a form of the account page from being handled.
var (
	errAgain      = errors.New("the subscriber must sign in again")
	errOtherLogin = errors.New("the form belongs to another login of the subscriber")
)

// form returns a handler that calls serve if the form has the token of the current login. The token
// proves that the form comes from a page that was shown in this login.
func (ac *account) form(serve accountHandler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		form, err := postForm(w, r)
		if err != nil {
			return err
		}

		v, err := ac.visitOf(r, form.Get("project"))
		if err != nil {
			return ac.unhandled(w, r, v, form, err)
		}
		if err := ac.checkForm(form, v); err != nil {
			return ac.unhandled(w, r, v, form, err)
		}
		return ac.unhandled(w, r, v, form, serve(w, r, v, form))
	}
}

// checkForm returns an error unless a form has the token of the visit's login.
func (ac *account) checkForm(form url.Values, v visit) error {
	switch {
	case ac.signed(form, "account form", v.Login.ID):
		return nil
	case ac.isFormOf(form, v.SubscriberID):
		return errOtherLogin
	}
	return errForm
}

// unhandled responds to a form that was not handled because of err. If err is nil, or if signing in again
// would not help, unhandled returns err.
func (ac *account) unhandled(w http.ResponseWriter, r *http.Request, v visit, form url.Values, err error) error {
	isOver, isOther := errors.Is(err, problem.Unauthenticated), errors.Is(err, errOtherLogin)
	if !isOver && !isOther && !errors.Is(err, errAgain) {
		return err
	}

	// The first request of a double click may have replaced the login.
	if ok, err := ac.forms.Replay(w, r, ac.submissionID(r, form)); ok || err != nil {
		return err
	}
	if p, ok := ac.unsent(r, v, form, err); ok {
		return ac.write(w, r, p, templates.Options{Status: http.StatusForbidden, Scripts: true})
	}
	switch {
	case isOther:
		return errForm
	case isOver:
		return ac.logIn(w, r, form.Get("project"), nil)
	}
	return ac.logIn(w, r, v.ProjectID, &v)
}

// sensitive is like form, but for changes to how a subscriber signs in. If the login may not make
// these changes, the subscriber must sign in again. Otherwise somebody else could use an open
// browser to take over the account.
func (ac *account) sensitive(serve accountHandler) func(http.ResponseWriter, *http.Request) error {
	return ac.form(func(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
		may, err := ac.mayChange(r, v)
		if err != nil {
			return err
		}
		if !may {
			return errAgain
		}
		return serve(w, r, v, form)
	})
}

// formsPerHour is how many forms a subscriber may send per hour, because the server remembers each of
// them. Nobody needs that many.
const formsPerHour = 60

// once returns a handler for forms that create or send something. A form that is sent twice is
// handled only once.
func (ac *account) once(serve accountHandler) accountHandler {
	return func(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
		rate := limit.Of(formsPerHour, time.Hour)
		if err := ac.Limits.TakeOf(r.Context(), limit.AccountForms, v.SubscriberID, rate); err != nil {
			return err
		}
		return ac.forms.Serve(w, r, once.Form{
			ID: ac.submissionID(r, form),
			Handle: func(w http.ResponseWriter, r *http.Request) (bool, error) {
				return true, serve(w, r, v, form)
			},
			Refuse: func(sent once.Sent) error {
				page := templates.AccountPage{Notice: ac.words(r).Say(describeSent(sent))}
				return ac.page(w, r, v, page, http.StatusConflict)
			},
		})
	}
}

// submissionID identifies a form by its path, its browser and its values. The values include a token
// that differs for each page.
func (ac *account) submissionID(r *http.Request, form url.Values) string {
	return r.URL.Path + "\n" + ac.cookies.FlowOf(r) + "\n" + form.Encode()
}

// describeSent returns the message for a form that was sent before.
func describeSent(sent once.Sent) string {
	switch {
	case sent.Ended && sent.Result == "":
		return "sent.codes"
	case sent.Ended:
		return "sent.done"
	case sent.Lost:
		return "sent.lost"
	}
	return "sent.waits"
}
