package fabric

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/password"
)

// PasswordLength says how many characters a new password has, at least and at most.
func (ss *Subscribers) PasswordLength() (least, most int) {
	return max(password.MinLength, ss.c.MinPassword), password.MaxLength
}

// hashPassword returns the hash of a new password of a subscriber, unless it is too
// easily guessed by who knows of the subscriber what many do.
func (ss *Subscribers) hashPassword(ctx context.Context, s Subscriber, secret string) (string, error) {
	if ss.c.Weak != nil {
		said := []string{s.Email, s.FirstName, s.LastName, s.DisplayName, s.Reference, s.CompanyName}
		if p, err := ss.projects.Find(ctx, s.ProjectID); err == nil {
			said = append(said, p.Name)
		}
		if err := ss.c.Weak(ctx, "password", secret, said...); err != nil {
			return "", err
		}
	}
	hash, err := ss.c.Passwords.Hash(ctx, secret)
	if err != nil {
		return "", fmt.Errorf("hashing password: %w", err)
	}
	return hash, nil
}

// newHash returns the hash to write for a password, or nil if it is not said or is
// the one that the subscriber has.
func (ss *Subscribers) newHash(ctx context.Context, s Subscriber, secret *string) (*string, error) {
	if secret == nil || *secret == "" {
		return nil, nil
	}
	if s.PasswordHash != "" {
		same, err := ss.c.Passwords.Verify(ctx, s.PasswordHash, *secret)
		if err != nil {
			return nil, fmt.Errorf("checking password: %w", err)
		}
		if same {
			return nil, nil
		}
	}
	hash, err := ss.hashPassword(ctx, s, *secret)
	return &hash, err
}
