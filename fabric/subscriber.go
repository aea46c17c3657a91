package fabric

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Subscribers manages the people of a project and their profiles, passwords and second
// factors.
type Subscribers struct {
	*core
	store        SubscriberStore
	projects     *Projects
	addresses    *Addresses
	applications *applications
}

// A SubscriberStore keeps subscribers; see [Stores].
type SubscriberStore interface {
	// CreateSubscriber writes a subscriber with its first address. It returns problem.Conflict on
	// "email" if the project has another subscriber with the same reference or email. It returns
	// problem.Conflict on "address" if the address name is taken. If concurrent calls conflict,
	// exactly one of them succeeds. If the project is unknown, it returns problem.NotFound.
	CreateSubscriber(ctx context.Context, s Subscriber, a Address, by ...Proof) error
	FindSubscriber(ctx context.Context, projectID, id string) (Subscriber, error)
	// FindSubscriberByEmail finds the subscriber with an email, which must be in the form that
	// [NormalizeEmail] returns.
	FindSubscriberByEmail(ctx context.Context, projectID, email string) (Subscriber, error)
	FindSubscriberByReference(ctx context.Context, projectID, reference string) (Subscriber, error)
	ListSubscribers(ctx context.Context, projectID string, q page.Query) (page.Page[Subscriber], error)
	// SearchSubscribers lists subscribers whose email, reference or names begin with the text, or
	// with each of its words. Its page tokens contain more than an id. If filling a page takes too
	// long, it returns a shorter page.
	SearchSubscribers(ctx context.Context, projectID, text string, q page.Query) (page.Page[Subscriber], error)
	// UpdateSubscriber writes the fields that are not nil, renames the subscriber's addresses and
	// returns the new row. If r is not nil, it also ends the subscriber's logins and grants. If the
	// email is taken, UpdateSubscriber returns problem.Conflict.
	UpdateSubscriber(ctx context.Context, projectID, id string, c SubscriberChange, at time.Time,
		r *revocation.Revocation) (Subscriber, error)
	// QueueLetter queues a letter to be sent.
	QueueLetter(ctx context.Context, l mail.Letter) error
	// FindInvitationOf returns the pending invitation of a subscriber, or problem.NotFound.
	FindInvitationOf(ctx context.Context, subscriberID string) (Invitation, error)
	// WithdrawInvitationOf deletes the invitations of a subscriber, with their letters. It returns
	// problem.Conflict if there are none.
	WithdrawInvitationOf(ctx context.Context, projectID, subscriberID string) error
	// DeleteSubscriber also deletes the subscriber's addresses, logins and grants.
	DeleteSubscriber(ctx context.Context, projectID string, r revocation.Revocation) error
	// EraseSubscriber deletes a subscriber and everything else that identifies it. If the
	// subscriber is already deleted, EraseSubscriber deletes the remaining data. If no data
	// remains, it returns problem.NotFound. If the subscriber exists, but req.OnlyDeleted is set, it
	// returns problem.Conflict.
	EraseSubscriber(ctx context.Context, projectID string, req ErasureRequest, now time.Time) (Erasure, error)
	// FindDeletedName returns the kept email, name or reference of a deleted subscriber. If the
	// subscriber was erased together with another account of the same person, it returns "". If no
	// name is kept, it returns problem.NotFound.
	FindDeletedName(ctx context.Context, projectID, id string) (string, error)
	// FindDeletedNamed returns the ids of at most limit deleted subscribers whose kept name equals
	// the given name.
	FindDeletedNamed(ctx context.Context, projectID, name string, limit int) ([]string, error)
	// ForgetDeletedNames deletes the names of subscribers that were deleted before the given time.
	ForgetDeletedNames(ctx context.Context, before time.Time) error
	// SubscriberWithAddresses reads a subscriber and its addresses in one query.
	SubscriberWithAddresses(ctx context.Context, projectID, id string) (Subscriber, []Address, error)
}

// A Subscriber is an end user of a project, who signs in, calls and is called.
type Subscriber struct {
	ID           string
	ProjectID    string
	Email        string // in the form of [NormalizeEmail]; may be ""
	Reference    string // the project's own identifier; may be ""
	PasswordHash string // "" if no password is set
	Person
	Claims      StandardClaims
	Verified    bool  // whether the subscriber has proved that it owns the email address
	Disabled    bool  // if set, the subscriber cannot sign in, has no valid token, and is not listed
	Epoch       int64 // incremented when a password is set or a link ends all logins; no device is then known
	RecordCalls RecordCalls
	Forwarding  Forwarding
	Created     time.Time
	Updated     time.Time
}

// FullName returns the name that other people see, or "".
func (s Subscriber) FullName() string {
	if s.DisplayName != "" {
		return s.DisplayName
	}
	return strings.TrimSpace(s.FirstName + " " + s.LastName)
}

// Title returns the name that the project sees. This is the full name. If no name is set, it is the
// email, otherwise the reference, otherwise the id.
func (s Subscriber) Title() string {
	for _, title := range []string{s.FullName(), s.Email, s.Reference} {
		if title != "" {
			return title
		}
	}
	return s.ID
}

// A SubscriberInput holds the fields of a subscriber to create or update; nil fields are
// left unchanged.
type SubscriberInput struct {
	Email    *string
	Verified *bool // see [Subscriber]; by default, a new email is unverified
	Password *string
	// PasswordHash is the hash of a new subscriber's password in another system; see
	// [password.CheckHash]. The hash is replaced when the subscriber signs in.
	PasswordHash *string
	Disabled     *bool
	Claims       *StandardClaims // replaces all claims
	Locale       *string         // replaces only the claim locale, even that in Claims
	RecordCalls  *RecordCalls    // the default for a new subscriber is RecordInherit
	Forwarding   ForwardingInput
	Proof        *Proof  // proof that permits the change or creation
	Epoch        *int64  // the epoch in which the subscriber must still be; nil means any
	Rights       *Rights // rights of the caller's credentials; nil means all rights
	Profile
}

// A Proof is a link, sent by email, that permits one change of an account. The change uses up the
// link. If the link no longer exists, the change returns problem.Conflict.
type Proof struct {
	Hash    string
	Purpose string
	Ends    bool // whether the change ends all logins and tokens, even if it does not change the password
}

// Check returns everything that is wrong with the input of an update or, if isNew, of a new
// subscriber, which must have an email address.
func (in SubscriberInput) Check(isNew bool) error {
	var missing error
	if isNew && in.Email == nil {
		missing = problem.Missing("email")
	}
	return errors.Join(missing, in.checkSet(isNew))
}

// checkSet returns everything that is wrong with the fields that are set.
func (in SubscriberInput) checkSet(isNew bool) error {
	errs := []error{in.Profile.check()}
	if in.Email != nil {
		errs = append(errs, checkEmail("email", *in.Email))
	}

	if in.Claims != nil {
		errs = append(errs, in.Claims.check())
	}
	if in.Locale != nil {
		errs = append(errs, StandardClaims{Locale: *in.Locale}.check())
	}
	errs = append(errs, checkRecordCalls(in.RecordCalls, RecordInherit, RecordOff, RecordOn), in.Forwarding.check())
	if in.PasswordHash != nil {
		errs = append(errs, password.CheckHash("password_hash", *in.PasswordHash))
	}

	switch {
	case in.PasswordHash != nil && (in.Password != nil || !isNew):
		errs = append(errs, problem.BadParam(
			"password_hash", "password_hash is only for new subscribers, instead of a password"))
	case in.Password == nil:
	case *in.Password == "":
		errs = append(errs, problem.Missing("password"))
	default:
		errs = append(errs, password.Check("password", *in.Password))
	}

	return errors.Join(errs...)
}

// Create creates a subscriber with its private address. in may have no password. If in.RecordCalls is
// neither nil nor RecordInherit, and in.Rights do not include Management, Create returns
// problem.Unauthenticated.
func (ss *Subscribers) Create(ctx context.Context, projectID string, in SubscriberInput) (Subscriber, error) {
	if err := in.Check(true); err != nil {
		return Subscriber{}, err
	}
	s, err := ss.newSubscriber(ctx, projectID, in)
	if err != nil {
		return Subscriber{}, err
	}
	if s.RecordCalls != RecordInherit && !in.Rights.Has(Management) {
		return Subscriber{}, problem.NoCredentials().Because("record_calls needs the scope Management")
	}
	return s, ss.insert(ctx, s, in.Proof)
}

// Draft returns the subscriber that Create would create, but does not create it.
func (ss *Subscribers) Draft(ctx context.Context, projectID string, in SubscriberInput) (Subscriber, error) {
	if err := in.Check(true); err != nil {
		return Subscriber{}, err
	}
	return ss.newSubscriber(ctx, projectID, in)
}

// newSubscriber returns the new subscriber that checked input describes.
func (ss *Subscribers) newSubscriber(
	ctx context.Context, projectID string, in SubscriberInput,
) (Subscriber, error) {
	s := Subscriber{ID: newID(), ProjectID: projectID, RecordCalls: RecordInherit}
	in.Profile.apply(&s.Person)
	in.Forwarding.apply(&s.Forwarding)

	if in.Email != nil {
		s.Email = NormalizeEmail(*in.Email)
	}
	if in.Disabled != nil {
		s.Disabled = *in.Disabled
	}
	if in.Verified != nil {
		s.Verified = *in.Verified
	}
	if in.Claims != nil {
		s.Claims = *in.Claims
	}
	if in.Locale != nil {
		s.Claims.Locale = *in.Locale
	}
	if in.RecordCalls != nil {
		s.RecordCalls = *in.RecordCalls
	}

	// The password is checked last, since it must not resemble the other fields.
	if in.Password != nil && *in.Password != "" {
		hash, err := ss.hashPassword(ctx, s, *in.Password)
		if err != nil {
			return Subscriber{}, err
		}
		s.PasswordHash = hash
	}
	if in.PasswordHash != nil {
		s.PasswordHash = *in.PasswordHash
	}

	s.Created = ss.now()
	s.Updated = s.Created
	return s, nil
}

// insert writes a new subscriber with an address whose name is not taken.
func (ss *Subscribers) insert(ctx context.Context, s Subscriber, by *Proof) error {
	var proofs []Proof
	if by != nil {
		proofs = append(proofs, *by)
	}
	return insertNamed(subscriberAddress(s), func(a Address) error {
		return ss.store.CreateSubscriber(ctx, s, a, proofs...)
	})
}

// Find returns a subscriber of a project.
func (ss *Subscribers) Find(ctx context.Context, projectID, id string) (Subscriber, error) {
	id, ok := canonical(id)
	if !ok {
		return Subscriber{}, problem.NoSuch("subscriber")
	}
	return ss.store.FindSubscriber(ctx, projectID, id)
}

// List returns a page of a project's subscribers.
func (ss *Subscribers) List(
	ctx context.Context, projectID string, q page.Query,
) (page.Page[Subscriber], error) {
	return ss.store.ListSubscribers(ctx, projectID, q)
}

// Search returns a page of the project's subscribers whose email, reference or names begin with a
// text, or with each of its words. If the text is the id of a subscriber, the page contains only this
// subscriber.
func (ss *Subscribers) Search(
	ctx context.Context, projectID, text string, q page.Query,
) (page.Page[Subscriber], error) {
	if _, ok := canonical(text); ok {
		s, err := ss.Find(ctx, projectID, text)
		if !errors.Is(err, problem.NotFound) {
			return page.Page[Subscriber]{Items: []Subscriber{s}}, err
		}
	}
	return ss.store.SearchSubscribers(ctx, projectID, norm.NFC.String(strings.Join(strings.Fields(text), " ")), q)
}

// An Info holds the data that subscribers can read about themselves with a SAT.
type Info struct {
	Subscriber  Subscriber
	Addresses   []Address
	Application *Application // nil if the SAT was issued for no application, or for one that no longer exists
}

// Info returns the data that the subscriber of a SAT can read about itself. If the subscriber was
// deleted or disabled, Info returns problem.Unauthenticated.
func (ss *Subscribers) Info(ctx context.Context, sat Token) (Info, error) {
	s, err := ss.reachable(ctx, sat.ProjectID, sat.SubscriberID)
	if errors.Is(err, problem.NotFound) || err == nil && s.Disabled {
		return Info{}, problem.NoCredentials().Because("the subscriber was deleted or disabled")
	}
	if err != nil {
		return Info{}, fmt.Errorf("finding subscriber: %w", err)
	}

	info := Info{Subscriber: s.Subscriber, Addresses: s.addresses}
	if sat.ClientID == "" {
		return info, nil
	}

	app, err := ss.applications.recent(ctx, sat.ProjectID, sat.ClientID)
	if errors.Is(err, problem.NotFound) {
		return info, nil
	}

	info.Application = &app
	return info, err
}
