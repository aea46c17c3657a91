package operator

import (
	"context"
	"errors"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A form that makes something is handled once on all nodes. The session store remembers it for as
// long as a session lasts.

func formKey(id string) session.Key {
	return session.Key{Kind: "operator-form", ID: session.Digest(id)}
}

// BeginForm records that the form with this id is being handled. If it was handled before, or is
// being handled on another node, BeginForm returns problem.Conflict and the result passed to
// EndForm, if any.
func (a *Operators) BeginForm(ctx context.Context, id string) (result string, err error) {
	if a.c.Sessions == nil {
		return "", nil
	}
	err = a.c.Sessions.Add(ctx, formKey(id), nil, a.c.Absolute)
	if !errors.Is(err, problem.Conflict) {
		return "", err
	}
	found, missing := a.c.Sessions.Get(ctx, formKey(id))
	if missing != nil && !errors.Is(missing, problem.NotFound) {
		return "", missing
	}
	return string(found), err
}

// EndForm records the result of a form that succeeded.
func (a *Operators) EndForm(ctx context.Context, id, result string) error {
	if a.c.Sessions == nil {
		return nil
	}
	return a.c.Sessions.Put(ctx, formKey(id), []byte(result), a.c.Absolute)
}

// ForgetForm lets a form that failed be handled again.
func (a *Operators) ForgetForm(ctx context.Context, id string) error {
	if a.c.Sessions == nil {
		return nil
	}
	return a.c.Sessions.Delete(ctx, formKey(id))
}
