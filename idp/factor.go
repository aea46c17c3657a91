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
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Proof is the first part of a login that needs a second factor: a correct password, an identity
// that an upstream provider has confirmed, or a login to raise. The proof is stored in the
// authorization request, and therefore belongs to the browser that began the request.
type Proof struct {
	SubscriberID string    `json:"subscriber_id"`
	AMR          []string  `json:"amr"`
	Began        time.Time `json:"began"`
	Password     string    `json:"password,omitempty"` // digest of the subscriber's password hash at the time
	Raises       string    `json:"raises,omitempty"`   // ID of the login to raise; "" creates a new login

	// UpstreamID is the upstream provider that has confirmed the identity, or "". IDToken is the
	// provider's ID token, for [Upstreams.Remember].
	UpstreamID string `json:"upstream,omitempty"`
	IDToken    string `json:"id_token,omitempty"`
}

// proofFor is how long a Proof waits for the second factor.
const proofFor = 10 * time.Minute

// Owner returns the subscriber of the proof as an owner of factors.
func (p Proof) Owner() factor.Owner { return OwnerOf(p.SubscriberID) }

// OwnerOf returns a subscriber as an owner of factors.
func OwnerOf(subscriberID string) factor.Owner {
	return factor.Owner{Kind: factor.Subscriber, ID: subscriberID}
}

// Unfinished is the error for a login that still needs a second factor. The password was correct,
// or an upstream provider has confirmed the identity.
type Unfinished struct{ Proof Proof }

func (u *Unfinished) Error() string { return "a second factor is needed" }

// FactorsOf returns which factors a subscriber has.
func (ls *Logins) FactorsOf(ctx context.Context, subscriberID string) (factor.Set, error) {
	if ls.Factors == nil {
		return factor.Set{}, nil
	}
	return ls.Factors.Has(ctx, OwnerOf(subscriberID))
}

// begin makes a login for a subscriber whose password was checked. If the subscriber has a second
// factor, it returns [Unfinished].
func (ls *Logins) begin(ctx context.Context, sub fabric.Subscriber, began time.Time, from Visitor) (Login, error) {
	set, err := ls.FactorsOf(ctx, sub.ID)
	if err != nil {
		return Login{}, err
	}
	amr := []string{"pwd"}
	if set.Any() {
		return Login{}, &Unfinished{Proof{
			SubscriberID: sub.ID,
			AMR:          amr,
			Began:        began,
			Password:     session.Digest(sub.PasswordHash),
		}}
	}
	return ls.create(ctx, sub, began, amr, from)
}

// ProofOf returns a proof for raising a login.
func (ls *Logins) ProofOf(s Login) *Proof {
	return &Proof{SubscriberID: s.SubscriberID, AMR: s.AMR, Began: ls.Now(), Raises: s.ID}
}

// Pending reports whether a proof is still waiting for its second factor.
func (ls *Logins) Pending(proof *Proof) bool {
	return proof != nil && ls.Now().Sub(proof.Began) <= proofFor
}

// Finish completes a login whose second factor was just presented. It creates a new login, or
// raises the login that the proof names. If the proof is too old, or the subscriber was disabled or
// deleted or got another password in the meantime, it returns problem.Unauthenticated.
func (ls *Logins) Finish(ctx context.Context, projectID string, proof Proof, amr []string,
	from Visitor) (Login, error) {
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

// Raise adds amr, the authentication methods just used, to a live login. The login keeps its ID and
// time, but its browser must get a new cookie. A silent login is then no longer silent.
func (ls *Logins) Raise(ctx context.Context, sid, subscriberID string, amr []string) (Login, error) {
	s, err := ls.Find(ctx, sid)
	if err != nil {
		return Login{}, err
	}
	if s.SubscriberID != subscriberID {
		return Login{}, problem.NoCredentials()
	}

	s.AMR = together(s.AMR, amr)
	s.Silent, s.SignedIn = false, time.Time{}
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

// CountPasskey counts an attempt to sign in with only a passkey against the limits of the visitor's
// network, because each refused passkey writes an audit event.
func (at *Attempts) CountPasskey(ctx context.Context, from Visitor) (CountedAttempt, error) {
	return at.countPasskey(ctx, networkCounts(from))
}

// CountSecondPasskey counts an attempt to present a passkey as the second factor of a proof. Like a
// password, it counts separately on a device that signed in to the account before, so that strangers
// in the same network do not lock the person out.
func (at *Attempts) CountSecondPasskey(ctx context.Context, projectID string, proof Proof,
	from Visitor) (CountedAttempt, error) {
	sub, err := at.Subscribers.FindSubscriber(ctx, projectID, proof.SubscriberID)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return CountedAttempt{}, fmt.Errorf("finding subscriber: %w", err)
	}

	counts := at.deviceCounts(sub, from)
	if counts == nil {
		counts = networkCounts(from)
	}
	return at.countPasskey(ctx, counts)
}

func (at *Attempts) countPasskey(ctx context.Context, counts []limit.Count) (CountedAttempt, error) {
	if _, err := at.Limits.TakeAll(ctx, counts); err != nil {
		return CountedAttempt{}, err
	}
	return CountedAttempt{limits: at.Limits, counts: counts}, nil
}

// LogInByPasskey makes a login for the owner of a passkey, who must be a subscriber of the project.
// No other factor is needed.
func (ls *Logins) LogInByPasskey(ctx context.Context, projectID string, key factor.Passkey,
	from Visitor) (Login, error) {
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
		return Login{}, factor.ErrUnknown
	}
	return s, err
}

// PlaceOf returns the device on which a second factor is presented, if the subscriber has finished
// a login with two factors on it before. Otherwise it returns "". Devices that had only logins with
// the password do not count as the subscriber's own. Such a device may belong to anyone who knew
// the password before the subscriber added a factor.
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

// RefuseFactor records a refused second factor, passkey or upstream identity, with the reason. If
// the reason is a reached limit, it is recorded at most once a minute for each subscriber.
// subscriberID is "" if the subscriber is unknown.
func (at *Attempts) RefuseFactor(ctx context.Context, projectID, subscriberID string, why *problem.Error) error {
	target := audit.Target{Kind: "account"}
	if subscriberID != "" {
		target = audit.Target{Kind: "subscriber", ID: subscriberID}
	}

	e := audit.Of("login", projectID, target.Kind, target.ID).Refuse(why.Code)
	if why.Kind == problem.RateLimited {
		isRecorded, err := at.recordedRecently(ctx, "second factor "+subscriberID)
		if err != nil {
			return err
		}
		if isRecorded {
			return nil
		}
		e = audit.Of("login", projectID, target.Kind, target.ID).Refuse(refusedTooMany).With("limit", why.Code)
	}

	if err := at.store.Record(ctx, e); err != nil {
		return fmt.Errorf("recording a refused login: %w", err)
	}
	at.Observe("login_refused")
	return nil
}

// enter creates a login after all required factors have been verified.
func (ls *Logins) enter(ctx context.Context, sub fabric.Subscriber, began time.Time, amr []string,
	from Visitor) (Login, error) {
	s, err := ls.create(ctx, sub, began, amr, from)
	if errors.Is(err, problem.Conflict) { // the subscriber was changed after it was read
		return Login{}, problem.NoCredentials()
	}
	if err != nil {
		return s, err
	}
	ls.Observe("login")
	return s, nil
}

// together returns the AMR of a login with two factors: the methods of both factors, and mfa.
func together(first, second []string) []string {
	all := slices.Clone(first)
	for _, method := range append(slices.Clone(second), "mfa") {
		if !slices.Contains(all, method) {
			all = append(all, method)
		}
	}
	return all
}
