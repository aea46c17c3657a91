package idp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
)

// rememberFor is how long the session store keeps the copy of a login after its row was last read
// or changed.
const rememberFor = 12 * time.Hour

func sessionKey(sid string) session.Key { return session.Key{Kind: "login", ID: sid} }

// cache writes a login to the session store. write is Put if the row has just changed, or Add if
// the row was only read, so that it does not overwrite a newer copy.
func (ls *Logins) cache(ctx context.Context, s Login,
	write func(context.Context, session.Key, []byte, time.Duration) error) error {
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing session: %w", err)
	}
	if err := write(ctx, sessionKey(s.ID), value, rememberFor); err != nil && !errors.Is(err, problem.Conflict) {
		return fmt.Errorf("writing session: %w", err)
	}
	return nil
}

// Find returns a login that has not ended. It looks in memory for a copy that is at most 300 ms old,
// then in the session store, then in the database. If the login has ended or is unknown, Find returns
// problem.Unauthenticated.
func (ls *Logins) Find(ctx context.Context, sid string) (Login, error) {
	s, err := ls.recent.Load(sid, func() (Login, error) { return ls.read(ctx, sid) })
	if err != nil {
		return Login{}, err
	}
	if !s.Ended.IsZero() {
		return Login{}, problem.NoCredentials()
	}
	err = ls.Revocations.Check(s.AuthTime,
		revocation.Subject{Kind: revocation.Session, ID: sid},
		revocation.Subject{Kind: revocation.Subscriber, ID: s.SubscriberID},
		revocation.Subject{Kind: revocation.Project, ID: s.ProjectID})
	return s, err
}

// Live returns an error if a login has ended or is unknown. Other services use it to check the sid
// of a token.
func (ls *Logins) Live(ctx context.Context, sid string) error {
	_, err := ls.Find(ctx, sid)
	return err
}

func (ls *Logins) read(ctx context.Context, sid string) (s Login, err error) {
	value, err := ls.Sessions.Get(ctx, sessionKey(sid))
	if err == nil && json.Unmarshal(value, &s) == nil && s.ID == sid {
		return s, nil
	}

	// The session store has no copy or is unavailable, so read the row.
	s, err = ls.store.FindLogin(ctx, sid)
	if errors.Is(err, problem.NotFound) {
		return Login{}, problem.NoCredentials()
	}
	if err != nil {
		return Login{}, fmt.Errorf("reading session: %w", err)
	}

	_ = ls.cache(ctx, s, ls.Sessions.Add) // so that the next caller need not read the row
	return s, nil
}

// FindInBrowser returns a login that belongs to the project, has not ended, and whose cookie has
// not expired. For any other login, it returns problem.Unauthenticated.
func (ls *Logins) FindInBrowser(ctx context.Context, sid, projectID string) (Login, error) {
	s, err := ls.Find(ctx, sid)
	if err != nil {
		return Login{}, err
	}
	if s.ProjectID != projectID || !ls.Now().Before(s.Expires) {
		return Login{}, problem.NoCredentials()
	}
	return s, nil
}

// Forget removes logins from the session store after their rows were deleted. Otherwise the store
// would still contain the subscriber and address of each login.
func (ls *Logins) Forget(ctx context.Context, sids ...string) error {
	var errs []error
	for _, sid := range sids {
		ls.recent.Drop(sid)
		errs = append(errs, ls.Sessions.Delete(ctx, sessionKey(sid)))
	}
	return errors.Join(errs...)
}
