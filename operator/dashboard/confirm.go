package dashboard

import (
	"errors"
	"net/http"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// A confirmPage asks an operator who is signed in to prove once more who it is.
type confirmPage struct {
	Email, Next string
	Code        bool // a code, too, of who has a second factor
	App         bool // of an authenticator app; else a recovery code
	Passkey     passkeyForm
	Faults      []string
}

// showConfirm serves GET /dashboard/confirm: what hurts most wants the password once
// more, and the second factor of who has one; or a passkey, which is both.
func (a *factorPages) showConfirm(v *visit) error {
	return a.confirmPage(v, http.StatusOK, ownPath(v.r.URL.Query().Get("next")), nil)
}

func (a *factorPages) confirmPage(v *visit, status int, next string, wrong []string) error {
	has, err := a.factorSet(v)
	if err != nil {
		return err
	}
	p := confirmPage{Email: v.operator.Email, Next: next, Code: has.Any(), App: has.TOTP}
	if p.Faults, p.Passkey, err = a.passkeyPrompt(v, has, passkeyForm{Action: Prefix + "/confirm", Next: next}, wrong); err != nil {
		return err
	}
	return a.page(v, status, "Confirm that it is you", "confirm", p)
}

// confirm serves POST /dashboard/confirm. A code is looked at, and used up, behind the
// right password alone.
func (a *factorPages) confirm(v *visit) error {
	next, methods := ownPath(v.form.Get("next")), []string{"pwd"}
	if v.form.Has("credential") {
		methods, err := a.checkPasskey(v, v.operator)
		if all, ok := wrongCode(err); ok {
			return a.confirmPage(v, http.StatusUnprocessableEntity, next, all)
		}
		if err != nil {
			return err
		}
		return a.raiseAndContinue(v, next, methods...)
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
		return a.confirmPage(v, status, next, []string{p.Message})
	}
	if err != nil {
		return err
	}
	if has.Any() {
		more, err := a.checkCode(v, v.operator)
		if all, ok := wrongCode(err); ok {
			return a.confirmPage(v, http.StatusUnprocessableEntity, next, all)
		}
		if err != nil {
			return err
		}
		methods = append(methods, more...)
	}
	return a.raiseAndContinue(v, next, methods...)
}
