package fabric

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// An Erasure reports which data about a subscriber was deleted, and which was kept.
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
		What: "if the subscriber was already deleted: the subscriber's names, phone number and addresses in " +
			"recordings that remain, and in calls and saved filters without the subscriber's id",
		Why: "only the id and the email or reference in the audit trail are left to find this data; an email or " +
			"reference that another subscriber has now is not used",
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
		What: "records of the subscriber's calls, without the subscriber's id, name and addresses",
		Why:  "they also belong to the other party",
	},
	{
		What: "the subscriber's addresses and phone number in settings that route calls to them: of other " +
			"subscribers, ring groups and scripts",
		Why: "they are settings of others, and without them calls might be lost; change them yourself",
	},
	{
		What: "messages that the subscriber received, as long as their senders have an account",
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

// An ErasureRequest names a subscriber to erase, and describes how a store finds the subscriber's
// data. The embedded revocation, whose ID is the subscriber's id, ends the subscriber's tokens.
type ErasureRequest struct {
	revocation.Revocation

	// OnlyDeleted makes the erasure fail if the subscriber exists.
	OnlyDeleted bool

	// Names returns the values by which a recording may name the subscriber as a party of its call,
	// in lower case. The addresses are those of the subscriber.
	Names func(s Subscriber, addresses []Address) []string
}

// Erase deletes a subscriber and all data about it in one transaction. Rows that must be kept
// remain without the subscriber's data. The result lists the deleted and the kept data.
//
// If the subscriber was already deleted, Erase deletes the data that remains. If no data remains, it
// returns problem.NotFound.
//
// If a step after the transaction fails, Erase returns both the result and the error. Other services
// may then still have data about the subscriber.
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
	req := ErasureRequest{
		Revocation:  permanentRevocation(revocation.Subscriber, id, now),
		OnlyDeleted: onlyDeleted,
		Names:       namesInRecordings,
	}
	e, err := ss.store.EraseSubscriber(ctx, projectID, req, now)
	if err != nil {
		return Erasure{}, err
	}
	e.SubscriberID = id
	e.ErasedAt = now.UTC()
	e.Kept = keptData

	// The rows are deleted, so later errors must not hide the result.
	err = ss.c.Revocations.Sync(ctx)
	if ss.c.Erased != nil {
		err = errors.Join(err, ss.c.Erased(ctx, e))
	}
	return e, err
}

// namesInRecordings returns the subscriber's email, reference and phone number, and the paths of its
// addresses, in lower case. It is the Names function of erasure requests.
func namesInRecordings(s Subscriber, addresses []Address) (names []string) {
	for _, name := range []string{s.Email, s.Reference, s.Claims.PhoneNumber} {
		if name != "" {
			names = append(names, strings.ToLower(name))
		}
	}
	for _, a := range addresses {
		names = append(names, strings.ToLower(a.Path()))
	}
	return names
}
