package idp

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
)

// A try is a password that may be checked. It was counted before that, so that of
// many at once no more are checked than there may be.
type try struct {
	p      *Provider
	counts []limit.Count
}

// try counts a password for an e-mail as it was typed, whether or not there is such an
// account, and for the network that it comes from. A device that signed in to the
// account before is counted by itself alone: strangers' guesses do not keep it out.
// Where there were too many it gives problem.RateLimited, the same for any e-mail.
func (p *Provider) try(ctx context.Context, projectID, email string, sub fabric.Subscriber, from Visitor) (try, error) {
	t := try{p: p}
	if device := p.knownDevice(from.Device, sub); device != "" {
		t.counts = []limit.Count{{Name: limit.LoginPerDevice, Who: device + " " + sub.ID}}
	} else {
		t.counts = append([]limit.Count{{Name: limit.LoginPerAccount, Who: accountOf(projectID, email)}},
			networkCounts(from)...)
	}
	over, err := p.Limits.TakeAll(ctx, t.counts)
	if errors.Is(err, problem.RateLimited) {
		p.Observe("login_throttled")
		if unsaid := p.throttled(ctx, projectID, email, sub, over); unsaid != nil {
			err = unsaid
		}
	}
	return t, err
}

// networkCounts are what a guess counts for the place that it comes from.
func networkCounts(from Visitor) []limit.Count {
	return []limit.Count{{Name: limit.LoginPerNetwork, Who: from.Network},
		{Name: limit.LoginPerRange, Who: limit.Range(from.Network)}}
}

// back has the try not count: the password was right, or was not checked.
func (t try) back(ctx context.Context) { t.p.Limits.ReturnAll(ctx, t.counts) }

// accountOf names an account for counting by the e-mail that was typed, however it was
// spelled.
func accountOf(projectID, email string) string {
	return projectID + " " + fabric.NormalizeEmail(email)
}

// Unlock has passwords tried again at a subscriber's account: those that were wrong
// count no more.
func (p *Provider) Unlock(ctx context.Context, sub fabric.Subscriber) error {
	return p.Limits.Reset(ctx, limit.LoginPerAccount, accountOf(sub.ProjectID, sub.Email))
}

// rehash makes the hash of a password anew that was just found right, where it was taken
// over from elsewhere or made with other parameters, and gives the subscriber with it.
// Where another has changed it meanwhile, the password must be right for that one.
func (p *Provider) rehash(ctx context.Context, sub fabric.Subscriber, password string) (fabric.Subscriber, bool, error) {
	if !p.Passwords.Stale(sub.PasswordHash) {
		return sub, true, nil
	}
	hash, err := p.Passwords.Hash(ctx, password)
	if err == nil {
		err = p.Store.RehashPassword(ctx, sub.ProjectID, sub.ID, sub.PasswordHash, hash)
	}
	if err == nil {
		sub.PasswordHash = hash
		return sub, true, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return sub, false, fmt.Errorf("hashing password anew: %w", err)
	}
	now, err := p.Subscribers.FindSubscriber(ctx, sub.ProjectID, sub.ID)
	if errors.Is(err, problem.NotFound) {
		return sub, false, nil
	}
	if err != nil {
		return sub, false, fmt.Errorf("finding subscriber: %w", err)
	}
	ok, err := p.Passwords.Verify(ctx, now.PasswordHash, password)
	if err != nil {
		return sub, false, fmt.Errorf("checking password: %w", err)
	}
	return now, ok, nil
}
