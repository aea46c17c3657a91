package fabric

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// ListAudit returns a page of the audit trail, the newest first.
func (f *Fabric) ListAudit(ctx context.Context, filter audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	return f.c.Store.ListAudit(ctx, filter, q)
}

// refusalsEvery is how often a refusal is noted of the same credentials: whoever asks again
// and again must not fill the disk.
const refusalsEvery = time.Minute

// RefuseManagement notes that somebody, by credentials without the scope Management, tried
// what needs it, unless that has just been noted of the same credentials.
func (f *Fabric) RefuseManagement(ctx context.Context, projectID, credentials, what string) error {
	if f.c.Sessions != nil {
		key := session.Key{Kind: "refused-management", ID: session.Digest(projectID + " " + credentials)}
		if err := f.c.Sessions.Add(ctx, key, nil, refusalsEvery); errors.Is(err, problem.Conflict) {
			return nil // while nobody can count, each is noted
		}
	}
	e := audit.Of("management", projectID, "project", projectID).With("request", what).Refuse(
		"the credentials lack the scope Management")
	if err := f.c.Store.Record(ctx, e); err != nil {
		return fmt.Errorf("noting a refusal: %w", err)
	}
	return nil
}

// NoteToken notes that somebody made a token by hand, who could have asked for it as its
// subscriber or guest would: made by a key they are too many to note.
func (f *Fabric) NoteToken(ctx context.Context, projectID string, kind TokenKind, targetKind, targetID string) error {
	if err := f.c.Store.Record(ctx, audit.Of("token.issued", projectID, targetKind, targetID).With("kind", string(kind))); err != nil {
		return fmt.Errorf("noting a token: %w", err)
	}
	return nil
}
