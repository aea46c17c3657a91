package fabric

import (
	"context"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// SubscriberFactors returns what proves who a subscriber is beside a password: a few,
// which are one page.
func (f *Fabric) SubscriberFactors(ctx context.Context, projectID, id string, _ page.Query) (page.Page[factor.Factor], error) {
	s, err := f.FindSubscriber(ctx, projectID, id)
	if err != nil || f.c.Factors == nil {
		return page.Page[factor.Factor]{}, err
	}
	all, err := f.c.Factors.List(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID})
	return page.Page[factor.Factor]{Items: all}, err
}

// RemoveFactor takes a factor away from a subscriber, by the id that SubscriberFactors
// gives.
func (f *Fabric) RemoveFactor(ctx context.Context, projectID, subscriberID, id string) error {
	s, err := f.FindSubscriber(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	if canon, ok := canonical(id); ok {
		id = canon
	} else if id != factor.TypeRecovery {
		return problem.NoSuch("factor")
	}
	if f.c.Factors == nil {
		return problem.NoSuch("factor")
	}
	return f.c.Factors.Remove(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID}, id)
}
