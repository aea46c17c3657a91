package operator

import (
	"context"
	"errors"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A form that makes something is handled once on all nodes. The session store remembers it for as
// long as a session lasts.

func formKey(id string) session.Key {
	return session.Key{Kind: "operator-form", ID: session.Digest(id)}
}

// formEnded precedes the result of a form in the session store. The entry of a form that is still
// being handled is empty.
const formEnded = "ended:"

// BeginForm records that the form with this id is being handled. If it was handled before, or is
// being handled on another node, BeginForm returns problem.Conflict. ended then reports whether
// EndForm was called, and result is what was passed to it.
func (a *Operators) BeginForm(ctx context.Context, id string) (result string, ended bool, err error) {
	if a.c.Sessions == nil {
		return "", false, nil
	}
	err = a.c.Sessions.Add(ctx, formKey(id), nil, a.c.Absolute)
	if !errors.Is(err, problem.Conflict) {
		return "", false, err
	}
	found, missing := a.c.Sessions.Get(ctx, formKey(id))
	if problem.IgnoreNotFound(missing) != nil {
		return "", false, missing
	}
	result, ended = strings.CutPrefix(string(found), formEnded)
	return result, ended, err
}

// EndForm records the result of a form that succeeded.
func (a *Operators) EndForm(ctx context.Context, id, result string) error {
	if a.c.Sessions == nil {
		return nil
	}
	return a.c.Sessions.Put(ctx, formKey(id), []byte(formEnded+result), a.c.Absolute)
}

// ForgetForm lets a form that failed be handled again.
func (a *Operators) ForgetForm(ctx context.Context, id string) error {
	if a.c.Sessions == nil {
		return nil
	}
	return a.c.Sessions.Delete(ctx, formKey(id))
}
