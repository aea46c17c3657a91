package declared

import (
	"context"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// subscribers describes subscribers. They are created without a password, because passwords do not
// belong in a file. Prune does not remove them, because an account belongs to a person. That
// person's email address may have changed since the file was written.
func (d *Declarer) subscribers() noun[fabric.Subscriber] {
	return noun[fabric.Subscriber]{
		kind:  "subscriber",
		by:    "email",
		stays: true,
		fields: func(s *fabric.Subscriber) []field {
			fields := []field{{"email", &s.Email}}
			for _, f := range fabric.PersonFields {
				fields = append(fields, field{f.Name, f.Text(&s.Person)})
			}
			return append(fields,
				field{"disabled", &s.Disabled},
				field{"verified", &s.Verified},
				field{"record_calls", &s.RecordCalls},
				field{"forward_busy", &s.Forwarding.Busy},
				field{"forward_no_answer", &s.Forwarding.NoAnswer},
				field{"ring_seconds", &s.Forwarding.RingSeconds},
			)
		},

		id:    func(s fabric.Subscriber) string { return s.ID },
		name:  func(s fabric.Subscriber) string { return s.Email },
		fresh: func() fabric.Subscriber { return fabric.Subscriber{RecordCalls: fabric.RecordInherit} },
		list: func(ctx context.Context, projectID string) ([]fabric.Subscriber, error) {
			return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Subscriber], error) {
				return d.c.Fabric.Subscribers.List(ctx, projectID, q)
			})
		},

		settle: func(s *fabric.Subscriber) error {
			s.Email = fabric.NormalizeEmail(s.Email)
			return nil
		},

		unsaid: func(e entry, old fabric.Subscriber, s *fabric.Subscriber) {
			if s.Email != old.Email && e.member("verified") == nil {
				s.Verified = false // the new address has not been verified
			}
		},

		check: func(_ context.Context, s fabric.Subscriber, isNew bool) error {
			return subscriberInput(fabric.Subscriber{}, s).Check(isNew)
		},

		create: func(ctx context.Context, projectID string, s fabric.Subscriber) (made, error) {
			created, err := d.c.Fabric.Subscribers.Create(ctx, projectID, subscriberInput(fabric.Subscriber{}, s))
			if err != nil {
				return made{}, err
			}
			address, err := d.addressOf(ctx, projectID, created.ID)
			if err != nil {
				return made{}, err
			}
			return made{id: created.ID, address: address}, nil
		},

		update: func(ctx context.Context, projectID string, old, s fabric.Subscriber) error {
			in := subscriberInput(old, s)
			in.Verified = &s.Verified // an update of the address alone would reset Verified
			if s.Email == old.Email {
				in.Verified = changed(old.Verified, s.Verified)
			}
			_, err := d.c.Fabric.Subscribers.Update(ctx, projectID, s.ID, in)
			return err
		},
	}
}

// subscriberInput returns only the changed fields, because others may change the remaining fields
// at the same time.
func subscriberInput(old, s fabric.Subscriber) fabric.SubscriberInput {
	return fabric.SubscriberInput{
		Email:       changed(old.Email, s.Email),
		Verified:    changed(old.Verified, s.Verified),
		Disabled:    changed(old.Disabled, s.Disabled),
		RecordCalls: changed(old.RecordCalls, s.RecordCalls),
		Forwarding:  old.Forwarding.ChangeTo(s.Forwarding),
		Profile:     old.ChangeTo(s.Person),
	}
}

// addressOf returns the address of a resource or subscriber.
func (d *Declarer) addressOf(ctx context.Context, projectID, id string) (string, error) {
	found, err := d.c.Fabric.Resources.ListAddresses(ctx, projectID, id, page.Query{Size: 1})
	if err != nil {
		return "", err
	}
	if len(found.Items) == 0 {
		return "", nil
	}
	return found.Items[0].Path(), nil
}
