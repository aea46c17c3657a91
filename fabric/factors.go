package fabric

import (
	"context"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// ListFactors returns what proves who a subscriber is beside a password: a few,
// which are one page.
func (ss *Subscribers) ListFactors(ctx context.Context, projectID, id string, _ page.Query) (page.Page[factor.Factor], error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil || ss.c.Factors == nil {
		return page.Page[factor.Factor]{}, err
	}
	all, err := ss.c.Factors.List(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID})
	return page.Page[factor.Factor]{Items: all}, err
}

// RemoveFactor takes a factor away from a subscriber, by the id that SubscriberFactors
// gives.
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
