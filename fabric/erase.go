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
	Found        bool             `json:"found"` // false if deleted before; the rest is now deleted
	ErasedAt     time.Time        `json:"erased_at"`
	Deleted      map[string]int64 `json:"deleted"` // deleted rows, by kind
	Anonymised   map[string]int64 `json:"anonymised"`
	Kept         []Kept           `json:"kept"`

	Sessions []string `json:"-"` // ids of the deleted logins
	Media    []string `json:"-"` // keys of the deleted recordings' media
}

// A Kept is data that an erasure does not delete, with the reason.
type Kept struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// kept lists the data that erasures never delete.
var kept = []Kept{
	{"the subscriber's id in the audit log (with network addresses and browsers), revocations, pending " +
		"logout notifications and used refresh tokens",
		"they prove past actions and keep issued tokens revoked; the id alone no longer identifies a " +
			"person, and the log is pruned after its retention time"},
	{"recordings on hold",
		"they may not be deleted or changed; erase the subscriber's id again when they are released"},
	{"recordings that also belong to another subscriber",
		"they are the other subscriber's as well; this subscriber's addresses are removed from them"},
	{"records of its calls, without its id, name and addresses", "they are the other party's as well"},
	{"messages that others sent to it, while one of them has an account", "they are the sender's"},
	{"records of the deleted recordings, for 40 days: ids, times and durations, but no addresses",
		"they keep earlier lists and bills consistent"},
	{"unfinished sign-in requests, for 30 minutes: an e-mail address that an app sent as login_hint",
		"they are in the session store under a key that only the browser knows, and expire by themselves"},
	{"data that webhooks, apps and operators received before, and backups",
		"they cannot be erased from here; let backups expire, and erase again after restoring one"},
}

// An Eraser identifies a subscriber's data in a store, apart from rows that refer to the
// subscriber's id.
type Eraser struct {
	revocation.Revocation

	// Names returns the values, in lower case, by which a recording may name the subscriber as a
	// party to its call: addresses, e-mail, phone number and reference.
	Names func(s Subscriber, all []Address) []string
}

// Erase deletes a subscriber and all data about it. If a row must be kept, Erase removes the
// subscriber from the row. The result lists what was deleted and what was kept. All rows change in
// one transaction. If the subscriber was already deleted, Erase removes the remaining data. If
// there is none, it returns problem.NotFound.
func (ss *Subscribers) Erase(ctx context.Context, projectID, id string) (Erasure, error) {
	id, ok := canonical(id)
	if !ok {
		return Erasure{}, problem.NoSuch("subscriber")
	}

	ctx = context.WithoutCancel(ctx) // finish even if the caller has disconnected
	defer ss.caches.forget()
	now := ss.now()
	e, err := ss.store.EraseSubscriber(ctx, projectID, Eraser{gone(revocation.Subscriber, id, now), namesOf}, now)
	if err != nil {
		return Erasure{}, err
	}

	e.SubscriberID, e.ErasedAt, e.Kept = id, now.UTC(), kept
	err = ss.c.Revocations.Sync(ctx)
	if ss.c.Erased != nil {
		err = errors.Join(err, ss.c.Erased(ctx, e))
	}

	return e, err
}

// namesOf implements Names of an Eraser.
func namesOf(s Subscriber, all []Address) (names []string) {
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
