package fabric

import (
	"context"
	"strings"
	"time"
)

// DeletedNamesFor is how long the names of deleted subscribers are kept for readers of the audit
// trail, unless events are kept for a different time.
const DeletedNamesFor = 365 * 24 * time.Hour

// DeletedName returns the email, name or reference that a deleted subscriber had. It returns "" if
// the name was erased with another account of the same person. If the subscriber itself was erased,
// or the name is no longer kept, DeletedName returns problem.NotFound.
func (ss *Subscribers) DeletedName(ctx context.Context, projectID, id string) (string, error) {
	return ss.store.FindDeletedName(ctx, projectID, id)
}

// DeletedNamed returns the ids of deleted subscribers whose kept name equals the given name,
// ignoring the case of A to Z and, in emails, of all letters. It returns at most the given number.
func (ss *Subscribers) DeletedNamed(ctx context.Context, projectID, name string, limit int) ([]string, error) {
	if strings.Contains(name, "@") {
		name = NormalizeEmail(name)
	}
	return ss.store.FindDeletedNamed(ctx, projectID, name, limit)
}

// ForgetDeletedNames deletes the names of subscribers that were deleted before the given time.
func (ss *Subscribers) ForgetDeletedNames(ctx context.Context, before time.Time) error {
	return ss.store.ForgetDeletedNames(ctx, before)
}
