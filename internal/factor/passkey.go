package factor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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
	Credential string // its id, in base64url
	Name       string // by which the owner tells it from others
	Record     []byte // the credential record (Web Authentication, section 4) as JSON
	Count      uint32 // of its signatures; always 0 where a passkey does not count
	Synced     bool   // it may be on several devices (backup eligible)
	BackedUp   bool   // it is (backup state)
	Created    time.Time
	Used       time.Time // zero if it never was
}

// AMR returns what a login by the passkey alone was proven by (RFC 8176): possession of a
// key that is in a device, or in a provider's software, to somebody present whom the
// device has verified. That is two factors.
func (p Passkey) AMR() []string {
	if p.Synced {
		return []string{"swk", "user", "pop", "mfa"}
	}
	return []string{"hwk", "user", "pop", "mfa"}
}

const (
	// ceremony is how long a challenge is good: a page with a passkey's prompt may stay open
	// as long as its sign-in may.
	ceremony    = 30 * time.Minute
	maxPasskeys = 20
	maxResponse = 16 << 10
)

// user is an owner as the library sees it.
type user struct {
	owner       Owner
	name, shown string
	credentials []webauthn.Credential
}

func (u user) WebAuthnID() []byte                         { return []byte(u.owner.String()) }
func (u user) WebAuthnName() string                       { return u.name }
func (u user) WebAuthnDisplayName() string                { return u.shown }
func (u user) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

// BeginPasskey returns the options by which a browser makes a passkey, as JSON. The flow
// is what it must end in; name and shown are how the passkey is called on the device.
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
	must := true
	options, data, err := f.web.BeginRegistration(u,
		webauthn.WithExclusions(webauthn.Credentials(u.credentials).CredentialDescriptors()),
		webauthn.WithConveyancePreference(protocol.PreferNoAttestation),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			RequireResidentKey: &must, ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired,
		}))
	if err != nil {
		return nil, fmt.Errorf("beginning registration: %w", err)
	}
	return f.keep(ctx, registrationKey(flow), data, options.Response)
}

// CreatePasskey ends what BeginPasskey began in the flow, by the browser's answer.
// Who has shown no second factor may make the first, and no other, as in ConfirmTOTP.
func (f *Factors) CreatePasskey(ctx context.Context, o Owner, first bool, flow, name string, answer []byte) (Passkey, error) {
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
	made.Attestation = webauthn.CredentialAttestation{} // none was asked for
	p := Passkey{ID: uuid.Must(uuid.NewV7()).String(), Owner: o, Name: PasskeyName(name), Created: f.now()}
	if err := p.record(*made); err != nil {
		return Passkey{}, err
	}
	if err := f.c.Store.CreatePasskey(ctx, p, first); err != nil {
		return Passkey{}, conflict(err, ErrKnown)
	}
	return p, nil
}

// PasskeyName returns a name that is short and not empty.
func PasskeyName(name string) string {
	name = strings.TrimSpace(strings.ToValidUTF8(name, ""))
	if name == "" {
		return "Passkey"
	}
	for utf8.RuneCountInString(name) > 60 {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
	return name
}

// BeginLogin returns the options by which a browser uses a passkey, as JSON: one of the
// owner, or of anybody where there is none. The flow is the login that it is for.
func (f *Factors) BeginLogin(ctx context.Context, flow string, o *Owner) ([]byte, error) {
	if f.web == nil {
		return nil, ErrNone
	}
	verified := webauthn.WithUserVerification(protocol.VerificationRequired)
	if o == nil {
		options, data, err := f.web.BeginDiscoverableLogin(verified)
		if err != nil {
			return nil, fmt.Errorf("beginning login: %w", err)
		}
		return f.keep(ctx, loginKey(flow), data, options.Response)
	}
	u, err := f.user(ctx, *o)
	if err != nil {
		return nil, err
	}
	options, data, err := f.web.BeginLogin(u, verified)
	if err != nil {
		return nil, fmt.Errorf("beginning login: %w", err)
	}
	return f.keep(ctx, loginKey(flow), data, options.Response)
}

// CheckPasskey ends what BeginLogin began in the flow, by the browser's answer, and
// gives the passkey that was used. It is the owner's where BeginLogin had one; else it
// says who the owner is.
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

func (f *Factors) validate(u user, data webauthn.SessionData, answer *protocol.ParsedCredentialAssertionData) (*webauthn.Credential, error) {
	if len(data.UserID) > 0 {
		return f.web.ValidateLogin(u, data, answer)
	}
	_, used, err := f.web.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) { return u, nil },
		data, answer)
	return used, err
}

// record writes a credential into the passkey.
func (p *Passkey) record(c webauthn.Credential) (err error) {
	c.Authenticator.CloneWarning = false
	p.Credential, p.Count = base64.RawURLEncoding.EncodeToString(c.ID), c.Authenticator.SignCount
	p.Synced, p.BackedUp = c.Flags.BackupEligible, c.Flags.BackupState
	if p.Record, err = json.Marshal(c); err != nil {
		return fmt.Errorf("writing credential: %w", err)
	}
	return nil
}

// user returns an owner with its passkeys.
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

// keep keeps a ceremony for its flow, and gives its options.
func (f *Factors) keep(ctx context.Context, key session.Key, data *webauthn.SessionData, options any) ([]byte, error) {
	value, err := json.Marshal(data)
	if err == nil {
		err = f.c.Sessions.Put(ctx, key, value, ceremony)
	}
	if err != nil {
		return nil, fmt.Errorf("keeping challenge: %w", err)
	}
	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("writing options: %w", err)
	}
	return text, nil
}

// take returns the ceremony of a flow: of many answers, one gets it.
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
