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

// FactorsOf tells which factors a subscriber has.
func (p *Provider) FactorsOf(ctx context.Context, subscriberID string) (factor.Set, error) {
	if p.Factors == nil {
		return factor.Set{}, nil
	}
	return p.Factors.Has(ctx, OwnerOf(subscriberID))
}

// begin makes the login of a subscriber whose password was checked, or gives
// [Unfinished] where it has a second factor.
func (p *Provider) begin(ctx context.Context, sub fabric.Subscriber, began time.Time, from Visitor) (Session, error) {
	set, err := p.FactorsOf(ctx, sub.ID)
	if err != nil {
		return Session{}, err
	}
	amr := []string{"pwd"}
	if set.Any() {
		return Session{}, &Unfinished{Proof{SubscriberID: sub.ID, AMR: amr, Began: began,
			Password: session.Digest(sub.PasswordHash)}}
	}
	return p.newSession(ctx, sub, began, amr, from)
}

// ProofOf returns the proof by which a login is raised.
func (p *Provider) ProofOf(s Session) *Proof {
	return &Proof{SubscriberID: s.SubscriberID, AMR: s.AMR, Began: p.Now(), Raises: s.ID}
}

// Pending reports whether a proof still waits for the rest.
func (p *Provider) Pending(proof *Proof) bool {
	return proof != nil && p.Now().Sub(proof.Began) <= proofFor
}

// Finish makes the login of a proof and of what was shown beside: new, or the one that
// it raises. Where the subscriber has changed meanwhile it is problem.Unauthenticated.
func (p *Provider) Finish(ctx context.Context, projectID string, proof Proof, amr []string, from Visitor) (Session, error) {
	if !p.Pending(&proof) {
		return Session{}, problem.NoCredentials()
	}
	if proof.Raises != "" {
		return p.Raise(ctx, proof.Raises, proof.SubscriberID, amr)
	}
	sub, err := p.Subscribers.FindSubscriber(ctx, projectID, proof.SubscriberID)
	if errors.Is(err, problem.NotFound) {
		return Session{}, problem.NoCredentials()
	}
	if err != nil {
		return Session{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.Disabled || session.Digest(sub.PasswordHash) != proof.Password {
		return Session{}, problem.NoCredentials()
	}
	return p.enter(ctx, sub, proof.Began, together(proof.AMR, amr), from)
}

// Raise has a login that lives prove more. It stays the same login, which began when it
// did: its browser must get a new cookie.
func (p *Provider) Raise(ctx context.Context, sid, subscriberID string, amr []string) (Session, error) {
	s, err := p.FindSession(ctx, sid)
	if err != nil {
		return Session{}, err
	}
	if s.SubscriberID != subscriberID {
		return Session{}, problem.NoCredentials()
	}
	s.AMR = together(s.AMR, amr)
	err = p.Store.RaiseSession(ctx, s)
	if errors.Is(err, problem.NotFound) {
		return Session{}, problem.NoCredentials()
	}
	if err != nil {
		return Session{}, err
	}
	p.seen.Drop(s.ID)
	return s, p.remember(ctx, s, p.Sessions.Put)
}

// CountPasskey counts a passkey that is about to be looked at, by its network, as a guess
// of a password is: each that is refused is a row of the audit trail. [Provider.LogInByPasskey]
// gives the try of a good one back.
func (p *Provider) CountPasskey(ctx context.Context, from Visitor) error {
	_, err := p.Limits.TakeAll(ctx, networkCounts(from))
	return err
}

// LogInByPasskey makes the login of a subscriber of a project who has shown a passkey,
// and nothing else.
func (p *Provider) LogInByPasskey(ctx context.Context, projectID string, key factor.Passkey, from Visitor) (Session, error) {
	if key.Owner.Kind != factor.Subscriber {
		return Session{}, factor.ErrUnknown
	}
	sub, err := p.Subscribers.FindSubscriber(ctx, projectID, key.Owner.ID)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Session{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if err != nil || sub.Disabled {
		return Session{}, factor.ErrUnknown
	}
	s, err := p.enter(ctx, sub, p.Now(), key.AMR(), from)
	if errors.Is(err, problem.Unauthenticated) {
		err = factor.ErrUnknown
	}
	if err == nil {
		p.Limits.ReturnAll(ctx, networkCounts(from))
	}
	return s, err
}

// PlaceOf names from where somebody shows a second factor, if the subscriber has shown one
// there before: a device on which a login by two factors was finished. No other is the
// subscriber's own: a login, or a device, that a password alone has made may be of anybody
// who knew that before there was a factor, and who resets a password makes as many as wanted.
func (p *Provider) PlaceOf(ctx context.Context, projectID string, proof Proof, from Visitor) (factor.Place, error) {
	sub, err := p.Subscribers.FindSubscriber(ctx, projectID, proof.SubscriberID)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return "", fmt.Errorf("finding subscriber: %w", err)
	}
	if device := p.provenDevice(from.Device, sub); device != "" {
		return factor.Place("device " + device), nil
	}
	return "", nil
}

// RefuseFactor notes that somebody did not prove who it is by a factor, and why: that too
// many were tried once a minute. The subscriber is "" where nobody knows whom it would have
// been.
func (p *Provider) RefuseFactor(ctx context.Context, projectID, subscriberID string, why *problem.Error) error {
	target := audit.Target{Kind: "account"}
	if subscriberID != "" {
		target = audit.Target{Kind: "subscriber", ID: subscriberID}
	}
	e := audit.Of("login", projectID, target.Kind, target.ID).Refuse(why.Code)
	if why.Kind == problem.RateLimited {
		said, err := p.justSaid(ctx, "second factor "+subscriberID)
		if said || err != nil {
			return err
		}
		e = audit.Of("login", projectID, target.Kind, target.ID).Refuse(refusedTooMany).With("limit", why.Code)
	}
	if err := p.Store.Record(ctx, e); err != nil {
		return fmt.Errorf("noting that a login is refused: %w", err)
	}
	p.Observe("login_refused")
	return nil
}

// enter makes a login that is proven whole.
func (p *Provider) enter(ctx context.Context, sub fabric.Subscriber, began time.Time, amr []string, from Visitor) (Session, error) {
	s, err := p.newSession(ctx, sub, began, amr, from)
	if errors.Is(err, problem.Conflict) { // changed since it was read
		return Session{}, problem.NoCredentials()
	}
	if err == nil {
		p.Observe("login")
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
