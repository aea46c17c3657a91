package transfer

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

func (im *Importer) number(ctx context.Context, r *Number) (Outcome, error) {
	numbers := im.Fabric.PhoneNumbers
	var old fabric.PhoneNumber
	find := func() (err error) {
		old, err = numbers.Find(ctx, r.ProjectID, r.ID)
		return err
	}
	findResource := func() error {
		_, err := im.Fabric.Resources.FindThing(ctx, r.ProjectID, r.ResourceID)
		return err
	}
	assign := func() error {
		if err := findResource(); err != nil {
			return err
		}
		_, err := im.Fabric.Routes.AssignPhone(ctx, r.ProjectID, r.ResourceID, r.ID, "calling")
		if errors.Is(err, problem.NotFound) {
			return nil // the number is assigned, but a disabled subscriber has no address to return
		}
		return err
	}

	assigns := r.ResourceID != "" && !im.Dry
	o := Outcome{Kind: kindNumber, ID: r.ID, Name: r.Number}
	o, err := im.create(ctx, o, r.ProjectID, find, func() error {
		if assigns { // a rejected number must not exist, so that the import can be repeated
			if err := findResource(); err != nil {
				return err
			}
		}
		err := numbers.Import(ctx, fabric.PhoneNumber{
			ID:        r.ID,
			ProjectID: r.ProjectID,
			Number:    r.Number,
			Created:   r.Created,
		}, im.Dry)
		if err != nil || !assigns {
			return err
		}
		return assign()
	})
	if err != nil {
		return o, err
	}

	// An earlier import may have been interrupted before it assigned the number.
	if o.Status == Exists && assigns && old.ResourceID == "" {
		err = assign()
	}
	if errors.Is(err, problem.NotFound) {
		o.Note = "it is not assigned, because its resource does not exist"
		return o, nil
	}
	return o, err
}

func (im *Importer) webhook(ctx context.Context, r *Webhook) (Outcome, error) {
	webhooks := im.Fabric.Webhooks
	find := func() error {
		_, err := webhooks.Find(ctx, r.ProjectID, r.ID)
		return err
	}

	o := Outcome{Kind: kindWebhook, ID: r.ID, Name: cmp.Or(r.Name, r.URL)}
	o, err := im.create(ctx, o, r.ProjectID, find, func() error {
		return webhooks.Import(ctx, fabric.Webhook{
			ID:        r.ID,
			ProjectID: r.ProjectID,
			URL:       r.URL,
			Name:      r.Name,
			Events:    r.Events,
			Enabled:   r.Enabled,
			Created:   r.Created,
		}, im.Dry)
	})
	if err != nil {
		return o, err
	}
	if o.Status != Exists {
		o.Note = "give its receiver the new signing key, which `selvage webhook key show` prints"
	}
	return o, nil
}

func (im *Importer) upstream(ctx context.Context, r *Upstream) (Outcome, error) {
	upstreams := im.IDP.Upstreams
	find := func() error {
		_, err := upstreams.Find(ctx, r.ProjectID, r.ID)
		return err
	}

	o := Outcome{Kind: kindUpstream, ID: r.ID, Name: r.Name}
	o, err := im.create(ctx, o, r.ProjectID, find, func() error {
		return upstreams.Import(ctx, idp.Upstream{
			ID:               r.ID,
			ProjectID:        r.ProjectID,
			Name:             r.Name,
			Issuer:           r.Issuer,
			ClientID:         r.ClientID,
			Enabled:          r.Enabled,
			UpstreamSettings: r.UpstreamSettings,
			Created:          r.Created,
		}, im.Dry)
	})
	if err != nil {
		return o, err
	}
	if o.Status != Exists && r.Secret {
		o.Note = "set its secret again; exports contain no secrets"
	}
	return o, nil
}

func (im *Importer) ingestKey(ctx context.Context, r *IngestKey) (Outcome, error) {
	keys := im.Fabric.IngestKeys
	find := func() error {
		_, err := keys.Find(ctx, r.ProjectID, r.ID)
		return err
	}

	o := Outcome{Kind: kindIngestKey, ID: r.ID, Name: cmp.Or(r.Name, r.Prefix)}
	return im.create(ctx, o, r.ProjectID, find, func() error {
		return keys.Import(ctx, fabric.IngestKey{
			ID:        r.ID,
			ProjectID: r.ProjectID,
			Name:      r.Name,
			Prefix:    r.Prefix,
			Hash:      r.Hash,
			Expires:   r.Expires,
			Created:   r.Created,
		}, im.Dry)
	})
}

func (im *Importer) rule(ctx context.Context, r *Rule) (Outcome, error) {
	find := func() error {
		_, err := im.Recordings.Retention().Find(ctx, r.ProjectID, r.ID)
		return err
	}

	o := Outcome{Kind: kindRule, ID: r.ID, Name: cmp.Or(r.Tag, r.SubscriberID, strconv.Itoa(r.Days)+" days")}
	return im.create(ctx, o, r.ProjectID, find, func() error {
		return im.Recordings.Retention().Import(ctx, recordings.Rule{
			ID:           r.ID,
			ProjectID:    r.ProjectID,
			Tag:          r.Tag,
			SubscriberID: r.SubscriberID,
			Days:         r.Days,
			Created:      r.Created,
		}, im.Dry)
	})
}
