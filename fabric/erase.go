package fabric

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// An Erasure reports what was deleted and what was kept of the data about a subscriber.
type Erasure struct {
	SubscriberID string           `json:"subscriber_id"`
	Found        bool             `json:"found"` // false if the subscriber was already deleted
	ErasedAt     time.Time        `json:"erased_at"`
	Deleted      map[string]int64 `json:"deleted"`    // deleted rows, by kind
	Anonymized   map[string]int64 `json:"anonymised"` // rows kept without data about the subscriber, by kind
	Kept         []KeptData       `json:"kept"`

	Sessions []string `json:"-"` // ids of the deleted logins
	Media    []string `json:"-"` // keys of the deleted recordings' media
}

// KeptData describes data that erasures do not delete.
type KeptData struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// keptData lists all data that erasures do not delete.
var keptData = []KeptData{
	{
		What: "the subscriber's id in the audit log (with network addresses and browsers), revocations, " +
			"pending logout notifications and used refresh tokens",
		Why: "they prove past actions and keep issued tokens revoked; the id alone no longer identifies a " +
			"person, and the log is pruned after its retention time",
	},
	{
		What: "if the subscriber had already been deleted: its names, phone number and addresses in " +
			"recordings that are not deleted, and in calls and saved filters without its id; they are found " +
			"only by the email or reference that is kept for the audit trail, unless another subscriber has it now",
		Why: "everything else was deleted with the subscriber, or may belong to somebody else",
	},
	{
		What: "recordings on hold",
		Why:  "they may not be deleted or changed; erase the subscriber's id again when they are released",
	},
	{
		What: "recordings that also belong to another subscriber",
		Why:  "they also belong to the other subscriber; this subscriber's addresses are removed from them",
	},
	{
		What: "records of its calls, without its id, name and addresses",
		Why:  "they also belong to the other party",
	},
	{
		What: "its addresses and phone number where other subscribers, ring groups and scripts lead calls to them",
		Why:  "they are settings of others, and without them calls might be lost; change them yourself",
	},
	{
		What: "messages that it received, as long as their senders have an account",
		Why:  "they belong to the sender",
	},
	{
		What: "records of the deleted recordings, for 40 days: ids, times and durations, but no addresses",
		Why:  "they keep earlier lists and bills consistent",
	},
	{
		What: "unfinished sign-in requests, for 30 minutes: an email address that an app sent as login_hint",
		Why:  "they are in the session store under a key that only the browser knows, and expire by themselves",
	},
	{
		What: "responses of webhook receivers to events about others, for 30 days at most",
		Why:  "they may contain anything, and are deleted with their deliveries",
	},
	{
		What: "data that webhooks, apps and operators received before, and backups",
		Why:  "they cannot be erased from here; let backups expire, and erase again after restoring one",
	},
}

// An Eraser describes to a store which data belongs to a subscriber. The embedded revocation ends
// the subscriber's tokens, and contains the id by which the store finds rows that refer to the
// subscriber.
type Eraser struct {
	revocation.Revocation

	// OnlyDeleted makes the erasure fail if the subscriber exists.
	OnlyDeleted bool

	// Names returns the values in lower case by which a recording may name the subscriber as a
	// party of its call. They are addresses, email, phone number and reference.
	Names func(s Subscriber, all []Address) []string
}

// Erase deletes a subscriber and all data about it in one transaction. Rows that must be kept
// remain without the subscriber's data. The result lists the deleted and the kept data.
//
// If the subscriber was already deleted, Erase deletes the data that remains. If
// no data remains, it returns problem.NotFound.
func (ss *Subscribers) Erase(ctx context.Context, projectID, id string) (Erasure, error) {
	return ss.erase(ctx, projectID, id, false)
}

// EraseDeleted is like Erase, but returns problem.Conflict if the subscriber exists, for example
// because it was imported again.
func (ss *Subscribers) EraseDeleted(ctx context.Context, projectID, id string) (Erasure, error) {
	return ss.erase(ctx, projectID, id, true)
}

// erase implements Erase and EraseDeleted.
func (ss *Subscribers) erase(ctx context.Context, projectID, id string, onlyDeleted bool) (Erasure, error) {
	id, ok := canonical(id)
	if !ok {
		return Erasure{}, problem.NoSuch("subscriber")
	}

	ctx = context.WithoutCancel(ctx) // finish even if the caller disconnects
	defer ss.caches.forget()
	now := ss.now()
	by := Eraser{
		Revocation:  permanentRevocation(revocation.Subscriber, id, now),
		OnlyDeleted: onlyDeleted,
		Names:       namesInRecordings,
	}
	e, err := ss.store.EraseSubscriber(ctx, projectID, by, now)
	if err != nil {
		return Erasure{}, err
	}
	e.SubscriberID = id
	e.ErasedAt = now.UTC()
	e.Kept = keptData

	// The rows are deleted. From here on, errors are returned with the result.
	err = ss.c.Revocations.Sync(ctx)
	if ss.c.Erased != nil {
		err = errors.Join(err, ss.c.Erased(ctx, e))
	}
	return e, err
}

// namesInRecordings implements Names of an Eraser.
func namesInRecordings(s Subscriber, all []Address) (names []string) {
	for _, name := range []string{s.Email, s.Reference, s.Claims.PhoneNumber} {
		if name != "" {
			names = append(names, strings.ToLower(name))
		}
	}
	for _, a := range all {
		names = append(names, strings.ToLower(a.Path()))
	}
	return names
}
