// Package factor keeps what proves who somebody is beside a password: passkeys
// (WebAuthn), codes of an authenticator app (TOTP, RFC 6238), and recovery codes for
// when those are lost.
//
// An [Owner] has them, a subscriber or an operator; the package knows no more of who
// that is. What it says of a proof is true when it says so and once: a code is taken by
// a compare-and-swap of the [Store], a recovery code by deleting its row, the challenge
// of a passkey by taking it out of the session store. Who may try, where a login goes
// on, and what the pages look like is the business of others.
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
	"github.com/selvage/selvage/keys"
)

// A Kind says what an Owner is.
type Kind string

// The kinds of owners.
const (
	Subscriber Kind = "subscriber"
	Operator   Kind = "operator"
)

// An Owner is somebody who has factors.
type Owner struct {
	Kind Kind
	ID   string // a UUID, never given to another
}

func (o Owner) String() string { return string(o.Kind) + ":" + o.ID }

// A Store keeps the rows of factors. Every method is one transaction; absent things,
// and those of another owner, are problem.NotFound. Who sets a factor up as the first is
// given ErrNotFirst where the owner has a passkey or an authenticator app: of many who do
// so at once one gets no error.
type Store interface {
	// CreatePasskey returns problem.Conflict if the credential is there already, whosever
	// it is, and problem.NotFound if the owner is not.
	CreatePasskey(ctx context.Context, p Passkey, first bool) error
	// FindPasskey finds the passkey that has a credential id.
	FindPasskey(ctx context.Context, credential string) (Passkey, error)
	ListPasskeys(ctx context.Context, o Owner) ([]Passkey, error)
	RenamePasskey(ctx context.Context, o Owner, id, name string) error
	// UsePasskey writes Record, Count and Used, if Count is still old; else it is
	// problem.Conflict.
	UsePasskey(ctx context.Context, p Passkey, old uint32) error
	DeletePasskey(ctx context.Context, o Owner, id string) error

	// CreateTOTP returns problem.Conflict if the owner has an authenticator app already.
	CreateTOTP(ctx context.Context, t TOTP, first bool) error
	FindTOTP(ctx context.Context, o Owner) (TOTP, error)
	// UseTOTP writes the step of a code that was given, if it is after all that were;
	// else it is problem.Conflict.
	UseTOTP(ctx context.Context, t TOTP) error
	DeleteTOTP(ctx context.Context, o Owner, id string) error

	// ReplaceRecoveryCodes makes these the only ones.
	ReplaceRecoveryCodes(ctx context.Context, o Owner, hashes []string, at time.Time) error
	// TakeRecoveryCode deletes a code: of many callers one gets no error.
	TakeRecoveryCode(ctx context.Context, o Owner, hash string) error
	// FindRecoveryCodes returns those that are left.
	FindRecoveryCodes(ctx context.Context, o Owner) (RecoveryCodes, error)

	// HasFactors tells what an owner has in one reading.
	HasFactors(ctx context.Context, o Owner) (Set, error)
}

// A Set says which factors an owner has.
type Set struct {
	Passkeys, TOTP bool
}

// Any reports whether there is one that can be asked for.
func (s Set) Any() bool { return s.Passkeys || s.TOTP }

// Config is what Factors work with.
type Config struct {
	Store    Store
	Sessions session.Store
	Ring     *keys.Ring
	AuthURL  string           // where browsers find the pages that ask: passkeys are bound to its host, and work at its origin alone
	Guesses  int              // codes that may be tried in GuessWindow for one owner at a Place; 0 means 6
	Now      func() time.Time // nil means time.Now
}

// GuessWindow is in what time guesses are counted.
const GuessWindow = 15 * time.Minute

// Factors apply the rules. Their methods may be called at once from any number of
// goroutines.
type Factors struct {
	c   Config
	web *webauthn.WebAuthn // nil where the host can have no passkeys
}

// New makes Factors.
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
		return f, nil // an address, and no name (Web Authentication, section 5.1.2)
	}
	f.web, err = webauthn.New(&webauthn.Config{
		RPID: at.Hostname(), RPDisplayName: at.Hostname(), RPOrigins: []string{at.Scheme + "://" + at.Host},
		AttestationPreference: protocol.PreferNoAttestation,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing passkeys: %w", err)
	}
	return f, nil
}

// Passkeys reports whether there can be passkeys: an address such as 127.0.0.1 has none.
func (f *Factors) Passkeys() bool { return f.web != nil }

// now returns the time to the microsecond, as rows keep it.
func (f *Factors) now() time.Time { return f.c.Now().UTC().Truncate(time.Microsecond) }

// Has tells which factors an owner has.
func (f *Factors) Has(ctx context.Context, o Owner) (Set, error) {
	s, err := f.c.Store.HasFactors(ctx, o)
	if err != nil {
		return s, fmt.Errorf("looking for factors: %w", err)
	}
	return s, nil
}

// The ways in which a proof fails. They say what happened, for whoever tried it.
var (
	ErrWrong   = problem.New(problem.Invalid, "wrong_code", "The code is wrong.")
	ErrUsed    = problem.New(problem.Invalid, "code_used", "This code was already used. Wait for the next one.")
	ErrUnknown = problem.New(problem.Invalid, "passkey_unknown",
		"This passkey is unknown here. Use another one, or sign in with your password.")
	ErrStale   = problem.New(problem.Invalid, "passkey_stale", "This took too long. Use your passkey again.")
	ErrRefused = problem.New(problem.Invalid, "passkey_refused",
		"This passkey could not be verified. Try it again, or sign in another way.")
	ErrCloned = problem.New(problem.Invalid, "passkey_cloned",
		"This passkey seems to have been copied, so it is no longer accepted. Sign in another way, then remove it from your account.")
	ErrKnown = problem.New(problem.Invalid, "passkey_known", "This passkey is already in use.")
	ErrNone  = problem.New(problem.Invalid, "no_passkeys",
		"Passkeys are not available: this server has no host name.")
	ErrTooMany = problem.New(problem.Invalid, "too_many_passkeys",
		"You already have 20 passkeys. Remove one first.")
	ErrPending  = problem.New(problem.Invalid, "enrolment_over", "Setting up took too long. Scan the new code.")
	ErrNotFirst = problem.New(problem.Forbidden, "factor_owed",
		"There is a second factor by now. Sign in with it first.")
	ErrEnrolled = problem.New(problem.Invalid, "enrolled", "You already have an authenticator app. Remove it first.")
)

// A Place is from where codes of an owner are tried, as far as it is known to be the
// owner's: the name of a device or a network where the owner has shown all that was asked
// for. Each is counted by itself. The zero value is all others, which are counted
// together: so from wherever strangers try, who may know the password, they have so many
// tries and no more, and do not keep the owner from its own.
type Place string

// guess counts a code that somebody tries, before it is looked at: however many are
// tried at once, no more than so many are.
func (f *Factors) guess(ctx context.Context, o Owner, at Place) error {
	n, err := f.c.Sessions.Incr(ctx, guessKey(o, at), GuessWindow)
	if err != nil {
		return fmt.Errorf("counting guesses: %w", err)
	}
	if n > int64(f.c.Guesses) {
		limited := problem.New(problem.RateLimited, "too_many_codes",
			"Too many wrong codes. Wait 15 minutes, then try again.")
		limited.RetryAfter = GuessWindow
		return limited
	}
	return nil
}

// guessed forgets the tries of an owner who has shown that it is the owner.
func (f *Factors) guessed(ctx context.Context, o Owner, at Place) {
	_ = f.c.Sessions.Delete(ctx, guessKey(o, at)) // they expire by themselves
}

func guessKey(o Owner, at Place) session.Key {
	return session.Key{Kind: "factor_guess", ID: session.Digest(o.String() + " " + string(at))}
}

// conflict returns another error where a store says Conflict.
func conflict(err, instead error) error {
	if errors.Is(err, problem.Conflict) {
		return instead
	}
	return err
}
