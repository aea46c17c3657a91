package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/uuid7"
)

// MaxAllowed is the maximum number of addresses that a guest token may reach.
const MaxAllowed = 10

// A GuestTokenInput requests a token that reaches a few addresses.
type GuestTokenInput struct {
	AllowedAddresses []string // ids of addresses
	ExpireAt         *int64   // Unix seconds
	Ch               string
	Region           *string
}

// CheckGuest returns all errors in the input that can be found without the store.
func (ts *Tokens) CheckGuest(in GuestTokenInput) error {
	_, err := parseAllowed(in.AllowedAddresses)
	return errors.Join(err, ts.checkExpiry("expire_at", in.ExpireAt), ts.checkPlace(in.Ch, in.Region))
}

// parseAllowed returns the ids of a guest's addresses in canonical form.
func parseAllowed(given []string) ([]string, error) {
	const param = "allowed_addresses"
	switch {
	case len(given) == 0:
		return nil, problem.Missing(param)
	case len(given) > MaxAllowed:
		return nil, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "allowed_address_limit_exceeded",
			Param:   param,
			Message: fmt.Sprintf("%s has %d addresses (maximum is %d)", param, len(given), MaxAllowed),
		}
	}

	ids := make([]string, 0, len(given))
	for _, text := range given {
		id, ok := canonical(text)
		if !ok {
			return nil, problem.BadParam(param, "%s must contain only UUIDs", param)
		}
		if slices.Contains(ids, id) {
			return nil, problem.BadParam(param, "%s must not contain an address twice", param)
		}
		ids = append(ids, id)
	}

	return ids, nil
}

// IssueGuest returns a guest token and its refresh token. The guest token reaches the given addresses of
// the issuer's project.
func (ts *Tokens) IssueGuest(ctx context.Context, by Issuer, in GuestTokenInput) (TokenPair, error) {
	if err := ts.CheckGuest(in); err != nil {
		return TokenPair{}, err
	}

	began := ts.now()
	ids, err := parseAllowed(in.AllowedAddresses)
	if err != nil {
		return TokenPair{}, err
	}

	n, err := ts.addresses.recentCount(ctx, by.ProjectID, ids)
	if err != nil {
		return TokenPair{}, fmt.Errorf("counting addresses: %w", err)
	}
	if n != len(ids) {
		return TokenPair{}, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "must_belong_to_project",
			Param:   "allowed_addresses",
			Message: "allowed_addresses must belong to the project",
		}
	}

	t := by.token(Guest)
	t.FamilyID = uuid7.At(began) // see Token.Began
	t.AddressIDs = ids
	t.IssuedAt = began
	t.ExpiresAt = ts.expiry(in.ExpireAt)
	return ts.issue(t)
}

// An InviteInput requests a token that reaches one address of the inviting subscriber.
type InviteInput struct {
	AddressID string
	ExpiresAt *int64 // Unix seconds
}

// CheckInvite returns all errors in the input that can be found without the store.
func (ts *Tokens) CheckInvite(in InviteInput) error {
	errs := []error{ts.checkExpiry("expires_at", in.ExpiresAt)}
	if in.AddressID == "" {
		errs = append(errs, problem.Missing("address_id"))
	} else if _, ok := canonical(in.AddressID); !ok {
		errs = append(errs, badAddress())
	}
	return errors.Join(errs...)
}

// badAddress is the error for an address that cannot be used for an invite or an embed key.
func badAddress() error { return problem.BadParam("address_id", "Address is invalid") }

// IssueInvite returns a token that reaches one address of the SAT's subscriber.
func (ts *Tokens) IssueInvite(ctx context.Context, sat Token, in InviteInput) (string, error) {
	if err := ts.CheckInvite(in); err != nil {
		return "", err
	}

	id, _ := canonical(in.AddressID)
	a, err := ts.addresses.store.FindAddress(ctx, sat.ProjectID, id)
	if errors.Is(err, problem.NotFound) {
		return "", badAddress()
	}
	if err != nil {
		return "", fmt.Errorf("finding address: %w", err)
	}
	if a.ResourceID != sat.SubscriberID {
		return "", badAddress()
	}

	t := Issuer{ProjectID: sat.ProjectID, SAT: &sat}.token(Invite)
	t.FamilyID = sat.FamilyID
	t.AddressIDs = []string{a.ID}
	t.IssuedAt = ts.now()
	t.ExpiresAt = ts.expiry(in.ExpiresAt)
	return ts.Seal(t)
}

// IssueEmbed returns a guest token for the address of an embed key.
func (ts *Tokens) IssueEmbed(ctx context.Context, secret string) (string, error) {
	if strings.TrimSpace(secret) == "" {
		return "", problem.Missing("token")
	}

	began := ts.now()
	k, err := ts.embedKeys.Find(ctx, secret)
	if err != nil {
		return "", err
	}

	n, err := ts.addresses.recentCount(ctx, k.ProjectID, []string{k.AddressID})
	if err != nil {
		return "", err
	}

	t := Issuer{ProjectID: k.ProjectID, KeyID: k.ID}.token(Guest)
	t.FamilyID = uuid7.At(began)
	t.AddressIDs = []string{k.AddressID}
	t.IssuedAt = began
	t.ExpiresAt = began.Add(embedLifetime)
	t.Embedded = true
	if n == 0 || !k.Revoked.IsZero() || ts.Check(ctx, t) != nil {
		return "", problem.New(problem.Forbidden, "forbidden", "the embed key is unknown or revoked")
	}
	if err := ts.embedKeys.count(ctx, "embed-token", k.ID, ts.c.EmbedLimits.Tokens); err != nil {
		return "", err
	}

	return ts.Seal(t)
}
