package oidc

import (
	"net/http"
	"slices"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
)

// faults lists the codes of errors that have a message in every language.
var faults = []string{
	"wrong_credentials", "wrong_password", "wrong_code", "code_used", "too_many_codes",
	"passkey_unknown", "passkey_stale", "passkey_refused", "passkey_cloned", "passkey_known",
	"no_passkeys", "too_many_passkeys", "enrolment_over", "enrolled",
}

// fault describes an error in the language of r. Only in English does it say exactly what is wrong
// with a password or an email address.
func (pg *pages) fault(r *http.Request, p *problem.Error) string {
	say := pg.words(r)
	switch {
	case slices.Contains(faults, p.Code):
		return say.Say("fault." + p.Code)
	case (p.Param == "password" || p.Param == "email") && say == words.English():
		return "The " + p.Message + "."
	case p.Code == "weak_password":
		return say.Say("fault.weak_password")
	case p.Param == "password":
		return say.Say("fault.password")
	case p.Param == "email":
		return say.Say("fault.email")
	}
	return say.Say("fault.other")
}

// formFault returns the message and status for an error that the person can fix in the form. For
// other errors the message is "".
func (pg *pages) formFault(w http.ResponseWriter, r *http.Request, err error) (sentence string, status int) {
	p := problem.First(err)
	switch {
	case p == nil:
		return "", 0
	case p.Kind == problem.Invalid:
		return pg.fault(r, p), http.StatusUnprocessableEntity
	case p.Kind == problem.RateLimited && !slices.Contains(faults, p.Code):
		return pg.throttled(w, r, p), http.StatusTooManyRequests
	case p.Kind == problem.RateLimited:
		web.RetryAfter(w, p)
		return pg.fault(r, p), http.StatusTooManyRequests
	}
	return "", 0
}
