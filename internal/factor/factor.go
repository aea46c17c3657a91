// Package factor manages second factors: passkeys (WebAuthn), codes from an authenticator app
// (TOTP, RFC 6238), and recovery codes for users who have lost the other factors.
//
// Factors belong to an [Owner], which is a subscriber or an operator. The package knows nothing
// else about owners. A code or a response of a passkey is accepted only once. The [Store] consumes
// an app's code with a compare-and-swap, and a recovery code by deleting its row. The challenge for a
// passkey is removed from the session store when the response arrives. Callers decide who may try a
// factor, where a login continues, and what the pages look like.
package factor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Kind is the kind of an Owner.
type Kind string

// The kinds of owners.
const (
	Subscriber Kind = "subscriber"
	Operator   Kind = "operator"
)

// An Owner is a user who has factors.
type Owner struct {
	Kind Kind
	ID   string // a UUID, never reused
}

func (o Owner) String() string { return string(o.Kind) + ":" + o.ID }

// A Store stores factors. Each method is one transaction. If a row is missing or belongs to another
// owner, the error is problem.NotFound.
//
// If first is set, a factor is created only if the owner has neither a passkey nor an authenticator
// app. Otherwise the error is ErrNotFirst. If several callers try to create a first factor at the
// same time, only one succeeds.
type Store interface {
	// CreatePasskey returns problem.Conflict if the credential is already stored, for any owner,
	// and problem.NotFound if the owner does not exist.
	CreatePasskey(ctx context.Context, p Passkey, first bool) error
	// FindPasskey returns the passkey with the given credential id.
	FindPasskey(ctx context.Context, credential string) (Passkey, error)
	ListPasskeys(ctx context.Context, o Owner) ([]Passkey, error)
	RenamePasskey(ctx context.Context, o Owner, id, name string) error
	// UsePasskey writes Record, Count, BackedUp and Used if the stored Count equals old. Otherwise
	// it returns problem.Conflict.
	UsePasskey(ctx context.Context, p Passkey, old uint32) error
	// DeletePasskey returns ErrLastPasskey if exceptLast is set and the owner has no other passkey.
	DeletePasskey(ctx context.Context, o Owner, id string, exceptLast bool) error

	// CreateTOTP returns problem.Conflict if the owner already has an authenticator app.
	CreateTOTP(ctx context.Context, t TOTP, first bool) error
	FindTOTP(ctx context.Context, o Owner) (TOTP, error)
	// UseTOTP stores the step of an accepted code if it is later than the stored one. Otherwise it
	// returns problem.Conflict.
	UseTOTP(ctx context.Context, t TOTP) error
	DeleteTOTP(ctx context.Context, o Owner, id string) error

	// CreateRecoveryCodes creates the codes that come with a factor. It returns ErrHasCodes if the
	// owner has codes.
	CreateRecoveryCodes(ctx context.Context, o Owner, hashes []string, at time.Time) error
	// ReplaceRecoveryCodes replaces all recovery codes of the owner.
	ReplaceRecoveryCodes(ctx context.Context, o Owner, hashes []string, at time.Time) error
	// TakeRecoveryCode deletes a code. If several callers take the same code, only one succeeds.
	TakeRecoveryCode(ctx context.Context, o Owner, hash string) error
	// FindRecoveryCodes returns the number of recovery codes that are left.
	FindRecoveryCodes(ctx context.Context, o Owner) (RecoveryCodes, error)

	// HasFactors returns the types of factors that an owner has, with a single read.
	HasFactors(ctx context.Context, o Owner) (Set, error)
}

// A Set holds the factors that an owner has.
type Set struct {
	Passkeys, TOTP bool
}

// Any reports whether the owner has a factor that a login can require.
func (s Set) Any() bool { return s.Passkeys || s.TOTP }

// A Sealer encrypts owners' secrets. Each secret is bound to a name, so that it cannot be passed off as
// another. A Sealer also derives keys that are the same on all nodes. A key ring implements it.
type Sealer interface {
	Derive(purpose string) [32]byte
	DeriveAll(purpose string) [][32]byte // derived from all master keys, the newest first
	SealSecret(name string, secret []byte) (sealed string, err error)
	OpenSecret(name, sealed string) (secret []byte, err error)
}

// Config configures Factors.
type Config struct {
	Store    Store
	Sessions session.Store
	Ring     Sealer
	// AuthURL is the URL of the pages that ask for factors. Passkeys are bound to its host and work
	// only at its origin.
	AuthURL string
	Guesses int              // tries per owner and Place within GuessWindow; 0 means 6
	Now     func() time.Time // nil means time.Now
}

// GuessWindow is the period in which guesses are counted.
const GuessWindow = 15 * time.Minute

// Factors creates and checks factors. Its methods are safe for concurrent use.
type Factors struct {
	c   Config
	web *webauthn.WebAuthn // nil if the host cannot be used for passkeys
}

// New returns Factors.
func New(c Config) (*Factors, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Guesses == 0 {
		c.Guesses = 6
	}

	f := &Factors{c: c}
	at, err := url.Parse(c.AuthURL)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.AuthURL, err)
	}
	if protocol.ValidateRPID(at.Hostname()) != nil {
		return f, nil // passkeys need a host name (Web Authentication, section 5.1.2)
	}

	f.web, err = webauthn.New(&webauthn.Config{
		RPID:                  at.Hostname(),
		RPDisplayName:         at.Hostname(),
		RPOrigins:             []string{at.Scheme + "://" + at.Host},
		AttestationPreference: protocol.PreferNoAttestation,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing passkeys: %w", err)
	}
	return f, nil
}

// Passkeys reports whether passkeys are available. They are not if AuthURL has an IP address as its
// host.
func (f *Factors) Passkeys() bool { return f.web != nil }

// now returns the time, truncated to microseconds as in rows.
func (f *Factors) now() time.Time { return f.c.Now().UTC().Truncate(time.Microsecond) }

// Has returns the types of factors that an owner has.
func (f *Factors) Has(ctx context.Context, o Owner) (Set, error) {
	s, err := f.c.Store.HasFactors(ctx, o)
	if err != nil {
		return s, fmt.Errorf("finding factors: %w", err)
	}
	return s, nil
}

// The errors whose messages are shown to the user.
var (
	ErrWrong   = problem.New(problem.Invalid, "wrong_code", "The code is wrong.")
	ErrUsed    = problem.New(problem.Invalid, "code_used", "This code was already used. Wait for the next one.")
	ErrUnknown = problem.New(problem.Invalid, "passkey_unknown",
		"This passkey is unknown here. Use another one, or sign in with your password.")
	ErrStale   = problem.New(problem.Invalid, "passkey_stale", "This took too long. Use your passkey again.")
	ErrRefused = problem.New(problem.Invalid, "passkey_refused",
		"This passkey could not be verified. Try it again, or sign in another way.")
	ErrCloned = problem.New(problem.Invalid, "passkey_cloned",
		"This passkey seems to have been copied, so it was not accepted. Sign in another way, then "+
			"remove it from your account.")
	ErrKnown = problem.New(problem.Invalid, "passkey_known", "This passkey is already in use.")
	ErrNone  = problem.New(problem.Invalid, "no_passkeys",
		"Passkeys are not available: this server has no host name.")
	ErrTooMany = problem.New(problem.Invalid, "too_many_passkeys",
		"You already have %d passkeys. Remove one first.", maxPasskeys)
	ErrPending  = problem.New(problem.Invalid, "enrolment_over", "Setting up took too long. Scan the new code.")
	ErrNotFirst = problem.New(problem.Forbidden, "factor_owed",
		"The account now has a second factor. Sign in with it first.")
	ErrLastPasskey = problem.New(problem.Conflict, "last_passkey",
		"This passkey is the only way to sign in to the account. Add another one first.")
	ErrEnrolled = problem.New(problem.Invalid, "enrolled", "You already have an authenticator app. Remove it first.")
)

// A Place is a device or network on which the owner has completed a login. Each Place has its own
// count of tries. The zero value stands for all unknown places, which share one count. Attackers
// who know the password therefore get only a few tries in total, and cannot lock the owner out of
// known places.
type Place string

// countGuess counts a try. It is called before the code is checked, so that concurrent tries cannot
// exceed the limit.
func (f *Factors) countGuess(ctx context.Context, o Owner, at Place) error {
	n, err := f.c.Sessions.Incr(ctx, guessKey(o, at), GuessWindow)
	if err != nil {
		return fmt.Errorf("counting guesses: %w", err)
	}
	if n > int64(f.c.Guesses) {
		limited := problem.New(problem.RateLimited, "too_many_codes",
			"Too many wrong codes. Wait %.0f minutes, then try again.", GuessWindow.Minutes())
		limited.RetryAfter = GuessWindow
		return limited
	}
	return nil
}

// resetGuesses resets the count after a correct code.
func (f *Factors) resetGuesses(ctx context.Context, o Owner, at Place) {
	_ = f.c.Sessions.Delete(ctx, guessKey(o, at)) // if this fails, the count expires by itself
}

func guessKey(o Owner, at Place) session.Key {
	return session.Key{Kind: "factor_guess", ID: session.Digest(o.String() + " " + string(at))}
}

// conflict returns instead if err is problem.Conflict, and err otherwise.
func conflict(err, instead error) error {
	if errors.Is(err, problem.Conflict) {
		return instead
	}
	return err
}
