package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/selvage/selvage/internal/problem"
)

// maxNamesakes is the maximum number of subscribers' credentials, and of SIP endpoints, with the same
// username that are tried for a phone.
const maxNamesakes = 8

// A SIPAccount is a set of SIP credentials with the password that a phone has to prove.
type SIPAccount struct {
	SIPCredential
	Password string
}

// Codecs returns the phone's codecs by their names in the API, in order of preference.
func (c SIPCredential) Codecs() (names []string) {
	_ = json.Unmarshal(c.Fields["codecs"], &names) // the schema ensures a list of strings
	return names
}

// Ciphers returns the SRTP ciphers of the credentials by their names in the API.
func (c SIPCredential) Ciphers() []string { return ciphersOf(c.Fields) }

// ErrDamaged is the error for a password that cannot be opened.
var ErrDamaged = errors.New("a password cannot be opened")

// FindAccounts returns the accounts with a username. In a project, a subscriber and a SIP endpoint
// may have the same username. Accounts of other projects may have it, too. The password decides
// which account a phone uses. Accounts of disabled subscribers and accounts without a password are
// omitted. If the password of an account cannot be opened, FindAccounts returns ErrDamaged together
// with the other accounts, which may belong to other projects.
func (sip *SIP) FindAccounts(ctx context.Context, username string) (all []SIPAccount, err error) {
	found, err := sip.store.NamedSIPCredentials(ctx, username, maxNamesakes)
	if err != nil {
		return nil, err
	}

	var damage error
	for _, c := range found {
		active, err := sip.hasActiveOwner(ctx, c)
		if err != nil {
			return nil, err
		}
		if !active {
			continue
		}
		password, err := sip.openPassword(c)
		if err != nil {
			damage = errors.Join(damage, fmt.Errorf("%w: %s: %w", ErrDamaged, c.ID, err))
			continue
		}
		if password != "" {
			all = append(all, SIPAccount{c, password})
		}
	}

	endpoints, err := sip.endpoints.accounts(ctx, username)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	return append(all, endpoints...), errors.Join(damage, err)
}

// FindAccount returns the credentials with which a phone of the given owner registered. If they were
// deleted or their subscriber is disabled, FindAccount returns problem.NotFound. For a SIP endpoint,
// owner and id are both the endpoint's id.
func (sip *SIP) FindAccount(ctx context.Context, projectID, owner, id string) (SIPCredential, error) {
	if owner == id {
		return sip.endpoints.find(ctx, projectID, id)
	}
	c, err := sip.store.FindSIPCredential(ctx, projectID, owner, id)
	if err != nil {
		return SIPCredential{}, err
	}
	active, err := sip.hasActiveOwner(ctx, c)
	if err != nil {
		return SIPCredential{}, err
	}
	if !active {
		return SIPCredential{}, problem.NoSuch("SIP credentials")
	}
	return c, nil
}

// hasActiveOwner reports whether the subscriber of credentials exists and is not disabled.
func (sip *SIP) hasActiveOwner(ctx context.Context, c SIPCredential) (bool, error) {
	s, err := sip.subscribers.Find(ctx, c.ProjectID, c.SubscriberID)
	if errors.Is(err, problem.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !s.Disabled, nil
}

// openPassword returns the password of credentials, or "" if they have none.
func (sip *SIP) openPassword(c SIPCredential) (string, error) {
	if c.Secrets == "" {
		return "", nil
	}
	secrets, err := sip.openSecrets(c.ID, c.Secrets)
	if err != nil {
		return "", err
	}
	return secrets.Text("password"), nil
}
