package factor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Passkey is a discoverable credential of Web Authentication.
type Passkey struct {
	ID         string
	Owner      Owner
	Credential string // the credential id, in base64url
	Name       string // chosen by the owner
	Record     []byte // the credential record (Web Authentication, section 4) as JSON
	Count      uint32 // the signature counter; always 0 if the passkey has no counter
	Synced     bool   // whether it may be on several devices (backup eligible)
	BackedUp   bool   // whether it is on several devices (backup state)
	Created    time.Time
	Used       time.Time // zero if never used
}

// AMR returns the authentication methods (RFC 8176) of a login that uses only the passkey. A
// passkey proves two factors: the user has the device or account that holds the key, and the device
// verified the user.
func (p Passkey) AMR() []string {
	if p.Synced {
		return []string{"swk", "user", "pop", "mfa"}
	}
	return []string{"hwk", "user", "pop", "mfa"}
}

const (
	// challengeLifetime is how long a challenge is valid. It equals the maximum duration of a sign-in,
	// because a page with a passkey prompt may stay open that long.
	challengeLifetime = 30 * time.Minute

	maxPasskeys = 20
	maxResponse = 16 << 10 // bytes in a browser's answer
)

// A user is an owner in the form that the webauthn library needs.
type user struct {
	owner       Owner
	name, shown string
	credentials []webauthn.Credential
}

func (u user) WebAuthnID() []byte                         { return []byte(u.owner.String()) }
func (u user) WebAuthnName() string                       { return u.name }
func (u user) WebAuthnDisplayName() string                { return u.shown }
func (u user) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

// BeginPasskey returns the options for a browser to create a passkey, as JSON. The caller must pass
// the same flow to CreatePasskey. The device shows name as the account's user name, and shown as
// its display name.
func (f *Factors) BeginPasskey(ctx context.Context, o Owner, flow, name, shown string) ([]byte, error) {
	if f.web == nil {
		return nil, ErrNone
	}

	u, err := f.user(ctx, o)
	if err != nil {
		return nil, err
	}

	if len(u.credentials) >= maxPasskeys {
		return nil, ErrTooMany
	}
	u.name, u.shown = name, shown

	// The passkey must be discoverable and verify its user, so that it can replace a password.
	required := true
	options, data, err := f.web.BeginRegistration(u,
		webauthn.WithExclusions(webauthn.Credentials(u.credentials).CredentialDescriptors()),
		webauthn.WithConveyancePreference(protocol.PreferNoAttestation),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			RequireResidentKey: &required,
			ResidentKey:        protocol.ResidentKeyRequirementRequired,
			UserVerification:   protocol.VerificationRequired,
		}))
	if err != nil {
		return nil, fmt.Errorf("starting registration: %w", err)
	}
	return f.keep(ctx, registrationKey(flow), data, options.Response)
}

// CreatePasskey verifies the browser's answer to BeginPasskey in the same flow, and stores the
// passkey. If first is set, CreatePasskey stores the passkey only if the owner has no other factor,
// and otherwise returns ErrNotFirst.
func (f *Factors) CreatePasskey(
	ctx context.Context, o Owner, first bool, flow, name string, answer []byte,
) (Passkey, error) {
	data, err := f.take(ctx, registrationKey(flow), answer)
	if err != nil {
		return Passkey{}, err
	}
	if string(data.UserID) != o.String() {
		return Passkey{}, ErrStale
	}

	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return Passkey{}, ErrRefused
	}
	made, err := f.web.CreateCredential(user{owner: o}, data, parsed)
	if err != nil {
		return Passkey{}, ErrRefused
	}

	made.Attestation = webauthn.CredentialAttestation{} // attestation is not requested
	p := Passkey{ID: uuid.Must(uuid.NewV7()).String(), Owner: o, Name: PasskeyName(name), Created: f.now()}
	if err := p.record(*made); err != nil {
		return Passkey{}, err
	}
	if err := f.c.Store.CreatePasskey(ctx, p, first); err != nil {
		return Passkey{}, conflict(err, ErrKnown)
	}
	return p, nil
}

// PasskeyName returns name as valid UTF-8 with at most 60 characters, or "Passkey" if name is
// empty.
func PasskeyName(name string) string {
	name = strings.TrimSpace(strings.ToValidUTF8(name, ""))
	if name == "" {
		return "Passkey"
	}

	const maxLength = 60
	n := 0
	for i := range name {
		if n++; n > maxLength {
			return name[:i]
		}
	}
	return name
}

// BeginLogin returns the options for a browser to use a passkey, as JSON. The passkey must belong
// to o, unless o is nil. The caller must pass the same flow to CheckPasskey.
func (f *Factors) BeginLogin(ctx context.Context, flow string, o *Owner) ([]byte, error) {
	if f.web == nil {
		return nil, ErrNone
	}

	verified := webauthn.WithUserVerification(protocol.VerificationRequired)

	if o == nil {
		options, data, err := f.web.BeginDiscoverableLogin(verified)
		if err != nil {
			return nil, fmt.Errorf("starting login: %w", err)
		}
		return f.keep(ctx, loginKey(flow), data, options.Response)
	}

	u, err := f.user(ctx, *o)
	if err != nil {
		return nil, err
	}

	options, data, err := f.web.BeginLogin(u, verified)
	if err != nil {
		return nil, fmt.Errorf("starting login: %w", err)
	}
	return f.keep(ctx, loginKey(flow), data, options.Response)
}

// CheckPasskey verifies the browser's answer to BeginLogin in the same flow, and returns the
// passkey that was used. If an owner was passed to BeginLogin, the passkey must belong to that
// owner. Otherwise the passkey identifies the owner.
func (f *Factors) CheckPasskey(ctx context.Context, flow string, answer []byte) (Passkey, error) {
	data, err := f.take(ctx, loginKey(flow), answer)
	if err != nil {
		return Passkey{}, err
	}

	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return Passkey{}, ErrRefused
	}

	p, err := f.c.Store.FindPasskey(ctx, base64.RawURLEncoding.EncodeToString(parsed.RawID))
	if errors.Is(err, problem.NotFound) {
		return Passkey{}, ErrUnknown
	}
	if err != nil {
		return Passkey{}, err
	}

	u, err := f.user(ctx, p.Owner)
	if err != nil {
		return Passkey{}, err
	}

	used, err := f.validate(u, data, parsed)
	if err != nil {
		return Passkey{}, ErrRefused
	}

	if used.Authenticator.CloneWarning {
		return p, ErrCloned
	}

	old := p.Count
	if err := p.record(*used); err != nil {
		return Passkey{}, err
	}
	p.Used = f.now()
	return p, conflict(f.c.Store.UsePasskey(ctx, p, old), ErrRefused)
}

// validate verifies the answer. If the ceremony began for a known owner, u must be that owner.
func (f *Factors) validate(
	u user, data webauthn.SessionData, answer *protocol.ParsedCredentialAssertionData,
) (*webauthn.Credential, error) {
	if len(data.UserID) > 0 {
		return f.web.ValidateLogin(u, data, answer)
	}
	_, used, err := f.web.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) { return u, nil },
		data, answer)
	return used, err
}

// record stores a credential in the fields of p.
func (p *Passkey) record(c webauthn.Credential) (err error) {
	c.Authenticator.CloneWarning = false
	p.Credential, p.Count = base64.RawURLEncoding.EncodeToString(c.ID), c.Authenticator.SignCount
	p.Synced, p.BackedUp = c.Flags.BackupEligible, c.Flags.BackupState
	if p.Record, err = json.Marshal(c); err != nil {
		return fmt.Errorf("encoding credential: %w", err)
	}
	return nil
}

// user returns o together with its passkeys.
func (f *Factors) user(ctx context.Context, o Owner) (user, error) {
	all, err := f.c.Store.ListPasskeys(ctx, o)
	if err != nil {
		return user{}, err
	}
	u := user{owner: o, credentials: make([]webauthn.Credential, len(all))}
	for i, p := range all {
		if err := json.Unmarshal(p.Record, &u.credentials[i]); err != nil {
			return u, fmt.Errorf("reading credential: %w", err)
		}
	}
	return u, nil
}

func registrationKey(flow string) session.Key {
	return session.Key{Kind: "passkey_registration", ID: session.Digest(flow)}
}

func loginKey(flow string) session.Key {
	return session.Key{Kind: "passkey_login", ID: session.Digest(flow)}
}

// keep stores the data of a ceremony under key, and returns the options for the browser as JSON.
func (f *Factors) keep(ctx context.Context, key session.Key, data *webauthn.SessionData, options any) ([]byte, error) {
	value, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("storing challenge: %w", err)
	}
	if err := f.c.Sessions.Put(ctx, key, value, challengeLifetime); err != nil {
		return nil, fmt.Errorf("storing challenge: %w", err)
	}

	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encoding options: %w", err)
	}
	return text, nil
}

// take removes and returns the data of the ceremony under key. If several answers arrive at the same
// time, only one gets the data.
func (f *Factors) take(ctx context.Context, key session.Key, answer []byte) (data webauthn.SessionData, err error) {
	if f.web == nil {
		return data, ErrNone
	}

	value, err := f.c.Sessions.Take(ctx, key)
	if errors.Is(err, problem.NotFound) {
		return data, ErrStale
	}
	if err != nil {
		return data, fmt.Errorf("reading challenge: %w", err)
	}

	if len(answer) > maxResponse {
		return data, ErrRefused
	}
	if err := json.Unmarshal(value, &data); err != nil {
		return data, fmt.Errorf("reading challenge: %w", err)
	}
	return data, nil
}
