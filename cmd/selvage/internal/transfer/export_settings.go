package transfer

import (
	"context"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

func (e *exporter) numbers(ctx context.Context, p fabric.Project) error {
	return each(ctx, p.ID, e.c.Fabric.PhoneNumbers.List, func(n fabric.PhoneNumber) error {
		return e.write(kindNumber, Number{
			Kind:       kindNumber,
			ID:         n.ID,
			ProjectID:  p.ID,
			Number:     n.Number,
			ResourceID: n.ResourceID,
			Created:    n.Created,
		})
	})
}

func (e *exporter) webhooks(ctx context.Context, p fabric.Project) error {
	return each(ctx, p.ID, e.c.Fabric.Webhooks.List, func(w fabric.Webhook) error {
		return e.write(kindWebhook, Webhook{
			Kind:      kindWebhook,
			ID:        w.ID,
			ProjectID: p.ID,
			URL:       w.URL,
			Name:      w.Name,
			Events:    w.Events,
			Enabled:   w.Enabled,
			Created:   w.Created,
		})
	})
}

func (e *exporter) upstreams(ctx context.Context, p fabric.Project) error {
	return each(ctx, p.ID, e.c.IDP.Upstreams.List, func(u idp.Upstream) error {
		if u.Secret != "" {
			e.sum.Left["secret of an upstream provider"]++
		}
		return e.write(kindUpstream, Upstream{
			Kind:             kindUpstream,
			ID:               u.ID,
			ProjectID:        p.ID,
			Name:             u.Name,
			Issuer:           u.Issuer,
			ClientID:         u.ClientID,
			Secret:           u.Secret != "",
			Enabled:          u.Enabled,
			UpstreamSettings: u.UpstreamSettings,
			Created:          u.Created,
		})
	})
}

func (e *exporter) ingestKeys(ctx context.Context, p fabric.Project) error {
	return each(ctx, p.ID, e.c.Fabric.IngestKeys.List, func(k fabric.IngestKey) error {
		expired := !k.Expires.IsZero() && !k.Expires.After(e.c.Now)
		if expired || !k.Revoked.IsZero() {
			return nil
		}
		return e.write(kindIngestKey, IngestKey{
			Kind:      kindIngestKey,
			ID:        k.ID,
			ProjectID: p.ID,
			Name:      k.Name,
			Prefix:    k.Prefix,
			Hash:      k.Hash,
			Expires:   k.Expires,
			Created:   k.Created,
		})
	})
}

func (e *exporter) rules(ctx context.Context, p fabric.Project) error {
	rules, err := e.c.Rules(ctx, p.ID)
	if err != nil {
		return err
	}

	for _, rule := range rules {
		err := e.write(kindRule, Rule{
			Kind:         kindRule,
			ID:           rule.ID,
			ProjectID:    p.ID,
			Tag:          rule.Tag,
			SubscriberID: rule.SubscriberID,
			Days:         rule.Days,
			Created:      rule.Created,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
