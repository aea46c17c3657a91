package dashboard

import (
	"errors"
	"net/http"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
)

// A confirmPage requires signed-in operators to confirm their identity.
type confirmPage struct {
	Email, Next string
	Code        bool // whether to ask for a code, too, because the operator has a second factor
	App         bool // whether the code may come from an app; otherwise it must be a recovery code
	Passkey     passkeyForm
	Faults      faults
}

// showConfirm serves GET /dashboard/confirm. Destructive actions require the password again, and
// the second factor if one is set up. A passkey counts as both.
func (a *factorPages) showConfirm(v *visit) error {
	return a.confirmPage(v, http.StatusOK, ownPath(v.r.URL.Query().Get("next")), nil)
}

func (a *factorPages) confirmPage(v *visit, status int, next string, wrong faults) error {
	has, err := a.factorSet(v)
	if err != nil {
		return err
	}
	p := confirmPage{Email: v.operator.Email, Next: next, Code: has.Any(), App: has.TOTP}
	prompt := passkeyForm{Action: Prefix + "/confirm", Next: next}
	if p.Faults, p.Passkey, err = a.passkeyPrompt(v, has, prompt, wrong); err != nil {
		return err
	}
	return a.page(v, status, "Confirm your identity", "confirm", p)
}

// confirm serves POST /dashboard/confirm. It verifies either a passkey, or the password and then a
// code, and records the factors in the session. A code that is sent with a wrong password remains
// unused.
func (a *factorPages) confirm(v *visit) error {
	next := ownPath(v.form.Get("next"))
	if v.form.Has("credential") {
		return a.confirmCode(v, next, a.checkPasskey)
	}
	has, err := a.factorSet(v)
	if err != nil {
		return err
	}

	err = a.Operators.Prove(v.r.Context(), v.operator, v.form.Get("password"), visitor(v.r))
	if p := problem.First(err); errors.Is(err, problem.Unauthenticated) || errors.Is(err, problem.RateLimited) {
		status := http.StatusUnprocessableEntity
		if p.Kind == problem.RateLimited {
			status = http.StatusTooManyRequests
			web.RetryAfter(v.w, p)
		}
		return a.confirmPage(v, status, next, faultAt("", p.Message))
	}
	if err != nil {
		return err
	}
	if has.Any() {
		return a.confirmCode(v, next, a.checkCode, "pwd")
	}
	return a.raiseAndContinue(v, next, "pwd")
}

// confirmCode calls check. It then adds the given methods, and those that check returns, to the session.
func (a *factorPages) confirmCode(
	v *visit, next string, check func(*visit, operator.Operator) ([]string, error), methods ...string,
) error {
	more, err := check(v, v.operator)
	if all, ok := wrongCode(err); ok {
		return a.confirmPage(v, http.StatusUnprocessableEntity, next, all)
	}
	if err != nil {
		return err
	}
	return a.raiseAndContinue(v, next, append(methods, more...)...)
}
