package operator

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A form that makes something is handled once on all nodes. The session store remembers it for as
// long as a session lasts.

func formKey(id string) session.Key {
	return session.Key{Kind: "operator-form", ID: session.Digest(id)}
}

// The entry of a form in the session store begins with formBegan and the time in seconds since 1970
// while the form is being handled, and then with formEnded and the result.
const (
	formBegan = "began:"
	formEnded = "ended:"
)

// A SentForm is a form that was sent before.
type SentForm struct {
	Began  time.Time // when a node began to handle it; zero once it was handled
	Ended  bool      // EndForm was called
	Result string    // what was passed to EndForm
}

// BeginForm records that the form with this id is being handled. If it was handled before, or is
// being handled on another node, BeginForm returns what is known of it, and problem.Conflict.
func (a *Operators) BeginForm(ctx context.Context, id string) (sent SentForm, err error) {
	if a.c.Sessions == nil {
		return sent, nil
	}
	began := formBegan + strconv.FormatInt(a.now().Unix(), 10)
	err = a.c.Sessions.Add(ctx, formKey(id), []byte(began), a.c.Absolute)
	if !errors.Is(err, problem.Conflict) {
		return sent, err
	}

	found, missing := a.c.Sessions.Get(ctx, formKey(id))
	if problem.IgnoreNotFound(missing) != nil {
		return sent, missing
	}
	sent.Result, sent.Ended = strings.CutPrefix(string(found), formEnded)
	if seconds, ok := strings.CutPrefix(string(found), formBegan); ok {
		at, _ := strconv.ParseInt(seconds, 10, 64)
		sent = SentForm{Began: time.Unix(at, 0)}
	}
	return sent, err
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
