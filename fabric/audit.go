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

// Audit reads the audit trail and records decisions that change no row.
type Audit struct {
	*core
	store AuditStore
}

// An AuditStore stores the audit trail; see [Stores].
type AuditStore interface {
	// Record writes the audit event for a decision that changes no row. All methods that change
	// rows write the event about their change in the same transaction.
	Record(ctx context.Context, e audit.Event) error
	// ListAudit returns a page of the audit trail, newest first.
	ListAudit(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error)
}

// List returns a page of the audit trail, newest first.
func (as *Audit) List(
	ctx context.Context, filter audit.Filter, q page.Query,
) (page.Page[audit.Event], error) {
	return as.store.ListAudit(ctx, filter, q)
}

// refusalsEvery is the minimum interval between two events about refusals of the same credentials.
// Without it, repeated requests could fill the disk.
const refusalsEvery = time.Minute

// RefuseManagement records that a request was refused because its credentials lack the scope
// Management. It records at most one refusal per refusalsEvery for the same credentials.
func (as *Audit) RefuseManagement(ctx context.Context, projectID, credentials, what string) error {
	if as.c.Sessions != nil {
		key := session.Key{Kind: "refused-management", ID: session.Digest(projectID + " " + credentials)}
		if err := as.c.Sessions.Add(ctx, key, nil, refusalsEvery); errors.Is(err, problem.Conflict) {
			return nil // after any other error, the refusal is recorded
		}
	}
	e := audit.Of("management", projectID, "project", projectID).With("request", what).Refuse(
		"the credentials lack the scope Management")
	if err := as.store.Record(ctx, e); err != nil {
		return fmt.Errorf("recording a refusal: %w", err)
	}
	return nil
}

// NoteToken records that an operator created a token manually. Tokens that are created with an API key
// are not recorded, because there are too many of them.
func (as *Audit) NoteToken(
	ctx context.Context, projectID string, kind TokenKind, targetKind, targetID string,
) error {
	if err := as.store.Record(
		ctx, audit.Of("token.issued", projectID, targetKind, targetID).With("kind", string(kind)),
	); err != nil {
		return fmt.Errorf("recording a token: %w", err)
	}
	return nil
}
