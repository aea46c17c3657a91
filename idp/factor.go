package idp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Proof is what somebody has shown of who it is, where that is not enough yet: its
// password, or a login that is to prove more. It lies in the authorization request, and
// so belongs to the browser that began that.
type Proof struct {
	SubscriberID string    `json:"subscriber_id"`
	AMR          []string  `json:"amr"`
	Began        time.Time `json:"began"`
	Password     string    `json:"password,omitempty"` // digest of the hash that was checked
	Raises       string    `json:"raises,omitempty"`   // the login that is to prove more; "" makes a new one
}

// proofFor is how long a Proof waits for the rest.
const proofFor = 10 * time.Minute

// Owner names the subscriber of the proof as an owner of factors.
func (p Proof) Owner() factor.Owner { return OwnerOf(p.SubscriberID) }

// OwnerOf names a subscriber as an owner of factors.
func OwnerOf(subscriberID string) factor.Owner {
	return factor.Owner{Kind: factor.Subscriber, ID: subscriberID}
}

// Unfinished is the error of a login that has begun well: the password was right, and a
// second factor is to follow.
type Unfinished struct{ Proof Proof }

func (u *Unfinished) Error() string { return "a second factor is needed" }

// Factors tells which factors a subscriber has.
func (ls *Logins) FactorsOf(ctx context.Context, subscriberID string) (factor.Set, error) {
	if ls.Factors == nil {
		return factor.Set{}, nil
	}
	return ls.Factors.Has(ctx, OwnerOf(subscriberID))
}

// begin makes the login of a subscriber whose password was checked, or gives
// [Unfinished] where it has a second factor.
func (ls *Logins) begin(ctx context.Context, sub fabric.Subscriber, began time.Time, from Visitor) (Login, error) {
	set, err := ls.FactorsOf(ctx, sub.ID)
	if err != nil {
		return Login{}, err
	}
	amr := []string{"pwd"}
	if set.Any() {
		return Login{}, &Unfinished{Proof{SubscriberID: sub.ID, AMR: amr, Began: began,
			Password: session.Digest(sub.PasswordHash)}}
	}
	return ls.create(ctx, sub, began, amr, from)
}

// ProofOf returns the proof by which a login is raised.
func (ls *Logins) ProofOf(s Login) *Proof {
	return &Proof{SubscriberID: s.SubscriberID, AMR: s.AMR, Began: ls.Now(), Raises: s.ID}
}

// Pending reports whether a proof still waits for the rest.
func (ls *Logins) Pending(proof *Proof) bool {
	return proof != nil && ls.Now().Sub(proof.Began) <= proofFor
}

// Finish makes the login of a proof and of what was shown beside: new, or the one that
// it raises. Where the subscriber has changed meanwhile it is problem.Unauthenticated.
func (ls *Logins) Finish(ctx context.Context, projectID string, proof Proof, amr []string, from Visitor) (Login, error) {
	if !ls.Pending(&proof) {
		return Login{}, problem.NoCredentials()
	}
	if proof.Raises != "" {
		return ls.Raise(ctx, proof.Raises, proof.SubscriberID, amr)
	}
	sub, err := ls.Subscribers.FindSubscriber(ctx, projectID, proof.SubscriberID)
	if errors.Is(err, problem.NotFound) {
		return Login{}, problem.NoCredentials()
	}
	if err != nil {
		return Login{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.Disabled || session.Digest(sub.PasswordHash) != proof.Password {
		return Login{}, problem.NoCredentials()
	}
	return ls.enter(ctx, sub, proof.Began, together(proof.AMR, amr), from)
}

// Raise has a login that lives prove more. It stays the same login, which began when it
// did: its browser must get a new cookie.
func (ls *Logins) Raise(ctx context.Context, sid, subscriberID string, amr []string) (Login, error) {
	s, err := ls.Find(ctx, sid)
	if err != nil {
		return Login{}, err
	}
	if s.SubscriberID != subscriberID {
		return Login{}, problem.NoCredentials()
	}
	s.AMR = together(s.AMR, amr)
	err = ls.store.RaiseLogin(ctx, s)
	if errors.Is(err, problem.NotFound) {
		return Login{}, problem.NoCredentials()
	}
	if err != nil {
		return Login{}, err
	}
	ls.recent.Drop(s.ID)
	return s, ls.cache(ctx, s, ls.Sessions.Put)
}

// CountPasskey counts a passkey that is about to be looked at, by its network, as a guess
// of a password is: each that is refused is a row of the audit trail. [Logins.LogInByPasskey]
// gives the try of a good one back.
func (at *Attempts) CountPasskey(ctx context.Context, from Visitor) error {
	_, err := at.Limits.TakeAll(ctx, networkCounts(from))
	return err
}

// LogInByPasskey makes the login of a subscriber of a project who has shown a passkey,
// and nothing else.
func (ls *Logins) LogInByPasskey(ctx context.Context, projectID string, key factor.Passkey, from Visitor) (Login, error) {
	if key.Owner.Kind != factor.Subscriber {
		return Login{}, factor.ErrUnknown
	}
	sub, err := ls.Subscribers.FindSubscriber(ctx, projectID, key.Owner.ID)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Login{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if err != nil || sub.Disabled {
		return Login{}, factor.ErrUnknown
	}
	s, err := ls.enter(ctx, sub, ls.Now(), key.AMR(), from)
	if errors.Is(err, problem.Unauthenticated) {
		err = factor.ErrUnknown
	}
	if err == nil {
		ls.Limits.ReturnAll(ctx, networkCounts(from))
	}
	return s, err
}

// PlaceOf names from where somebody shows a second factor, if the subscriber has shown one
// there before: a device on which a login by two factors was finished. No other is the
// subscriber's own: a login, or a device, that a password alone has made may be of anybody
// who knew that before there was a factor, and who resets a password makes as many as wanted.
func (ls *Logins) PlaceOf(ctx context.Context, projectID string, proof Proof, from Visitor) (factor.Place, error) {
	sub, err := ls.Subscribers.FindSubscriber(ctx, projectID, proof.SubscriberID)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return "", fmt.Errorf("finding subscriber: %w", err)
	}
	if device := ls.marks.findProven(from.Device, sub); device != "" {
		return factor.Place("device " + device), nil
	}
	return "", nil
}

// RefuseFactor notes that somebody did not prove who it is by a factor, and why: that too
// many were tried once a minute. The subscriber is "" where nobody knows whom it would have
// been.
func (at *Attempts) RefuseFactor(ctx context.Context, projectID, subscriberID string, why *problem.Error) error {
	target := audit.Target{Kind: "account"}
	if subscriberID != "" {
		target = audit.Target{Kind: "subscriber", ID: subscriberID}
	}
	e := audit.Of("login", projectID, target.Kind, target.ID).Refuse(why.Code)
	if why.Kind == problem.RateLimited {
		said, err := at.recordedRecently(ctx, "second factor "+subscriberID)
		if said || err != nil {
			return err
		}
		e = audit.Of("login", projectID, target.Kind, target.ID).Refuse(refusedTooMany).With("limit", why.Code)
	}
	if err := at.store.Record(ctx, e); err != nil {
		return fmt.Errorf("noting that a login is refused: %w", err)
	}
	at.Observe("login_refused")
	return nil
}

// enter makes a login that is proven whole.
func (ls *Logins) enter(ctx context.Context, sub fabric.Subscriber, began time.Time, amr []string, from Visitor) (Login, error) {
	s, err := ls.create(ctx, sub, began, amr, from)
	if errors.Is(err, problem.Conflict) { // changed since it was read
		return Login{}, problem.NoCredentials()
	}
	if err == nil {
		ls.Observe("login")
	}
	return s, err
}

// together returns the ways in which something was proven that was proven by both: two
// factors.
func together(before, beside []string) []string {
	all := slices.Clone(before)
	for _, way := range append(slices.Clone(beside), "mfa") {
		if !slices.Contains(all, way) {
			all = append(all, way)
		}
	}
	return all
}
