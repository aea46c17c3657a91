package declared

import (
	"context"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// subscribers are made without a password: a file is no place for one.
func (d *Declarer) subscribers() noun[fabric.Subscriber] {
	return noun[fabric.Subscriber]{
		kind: "subscriber", by: "email",
		fields: func(s *fabric.Subscriber) []field {
			return []field{
				{"email", &s.Email}, {"first_name", &s.FirstName}, {"last_name", &s.LastName}, {"display_name", &s.DisplayName},
				{"job_title", &s.JobTitle}, {"time_zone", &s.TimeZone}, {"country", &s.Country}, {"company_name", &s.CompanyName},
				{"region", &s.Region}, {"disabled", &s.Disabled}, {"verified", &s.Verified},
			}
		},
		id:    func(s fabric.Subscriber) string { return s.ID },
		name:  func(s fabric.Subscriber) string { return s.Email },
		fresh: func() fabric.Subscriber { return fabric.Subscriber{} },
		list: func(ctx context.Context, projectID string) ([]fabric.Subscriber, error) {
			return every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Subscriber], error) {
				return d.c.Fabric.ListSubscribers(ctx, projectID, q)
			})
		},
		settle: func(s *fabric.Subscriber) error {
			s.Email = fabric.NormalizeEmail(s.Email)
			return nil
		},
		check: func(_ context.Context, s fabric.Subscriber, isNew bool) error { return subscriberInput(s).Check(isNew) },
		create: func(ctx context.Context, projectID string, s fabric.Subscriber) (made, error) {
			one, err := d.c.Fabric.CreateSubscriber(ctx, projectID, subscriberInput(s))
			if err != nil {
				return made{}, err
			}
			address, err := d.addressOf(ctx, projectID, one.ID)
			return made{id: one.ID, address: address}, err
		},
		update: func(ctx context.Context, projectID string, _, s fabric.Subscriber) error {
			_, err := d.c.Fabric.UpdateSubscriber(ctx, projectID, s.ID, subscriberInput(s))
			return err
		},
		remove: func(ctx context.Context, projectID string, s fabric.Subscriber) error {
			return d.c.Fabric.DeleteSubscriber(ctx, projectID, s.ID)
		},
	}
}

func subscriberInput(s fabric.Subscriber) fabric.SubscriberInput {
	return fabric.SubscriberInput{
		Email: &s.Email, Verified: &s.Verified, Disabled: &s.Disabled,
		Profile: fabric.Profile{
			FirstName: &s.FirstName, LastName: &s.LastName, DisplayName: &s.DisplayName, JobTitle: &s.JobTitle,
			TimeZone: &s.TimeZone, Country: &s.Country, CompanyName: &s.CompanyName, Region: &s.Region,
		},
	}
}

// addressOf gives where something is reached.
func (d *Declarer) addressOf(ctx context.Context, projectID, id string) (string, error) {
	p, err := d.c.Fabric.ThingAddresses(ctx, projectID, id, page.Query{Size: 1})
	if err != nil || len(p.Items) == 0 {
		return "", err
	}
	return p.Items[0].Path(), nil
}
