package fabric

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
)

// PasswordLength returns the shortest and the longest length of a new password.
func (ss *Subscribers) PasswordLength() (least, most int) {
	return max(password.MinLength, ss.c.MinPassword), password.MaxLength
}

// hashPassword returns the hash of a subscriber's new password, or an error if it is too
// easy to guess from what many people know about the subscriber.
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

// newHash returns the hash to write for a password, or nil if none is given or the
// subscriber already has it.
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

// ListFactors returns a subscriber's factors in addition to its password. They always fit
// one page.
func (ss *Subscribers) ListFactors(
	ctx context.Context, projectID, id string, _ page.Query,
) (page.Page[factor.Factor], error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil || ss.c.Factors == nil {
		return page.Page[factor.Factor]{}, err
	}
	all, err := ss.c.Factors.List(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID})
	return page.Page[factor.Factor]{Items: all}, err
}

// RemoveFactor removes a factor from a subscriber, by the id that ListFactors returns.
func (ss *Subscribers) RemoveFactor(ctx context.Context, projectID, subscriberID, id string) error {
	s, err := ss.Find(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	if canon, ok := canonical(id); ok {
		id = canon
	} else if id != factor.TypeRecovery {
		return problem.NoSuch("factor")
	}
	if ss.c.Factors == nil {
		return problem.NoSuch("factor")
	}
	return ss.c.Factors.Remove(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID}, id)
}
