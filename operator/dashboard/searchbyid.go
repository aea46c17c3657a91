package dashboard

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator/names"
)

// uuid matches ids that are UUIDs, as most ids are.
var uuid = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// findByID returns every resource, address, client, API key, call and webhook of the project that
// has the given id.
func (a *searchPages) findByID(v *visit, query string) (g hitGroup, err error) {
	g.Title = "Id"
	if !uuid.MatchString(query) {
		return g, nil
	}

	id, ctx := strings.ToLower(query), v.r.Context()
	for _, find := range []func(context.Context, *visit, string) (hit, error){
		a.resourceWithID, a.addressWithID, a.clientWithID, a.keyWithID, a.callWithID, a.webhookWithID,
	} {
		one, err := find(ctx, v, id)
		if problem.IgnoreNotFound(err) != nil {
			return g, err
		}
		if err == nil {
			g.Hits = append(g.Hits, one)
		}
	}
	return g, nil
}

func (a *searchPages) resourceWithID(ctx context.Context, v *visit, id string) (hit, error) {
	t, err := a.site.Fabric.Resources.FindThing(ctx, v.project.ID, id)
	if err != nil {
		return hit{}, err
	}
	if t.Resource != nil {
		return hit{
			Title: t.Resource.DisplayName,
			Note:  "Resource",
			URL:   v.thingURL(t.Resource.Type, id),
		}, nil
	}

	return hit{
		Title: v.subscriberRow(*t.Subscriber).Title,
		Note:  "Subscriber",
		URL:   v.thingURL(subscriberType, id),
	}, nil
}

func (a *searchPages) addressWithID(ctx context.Context, v *visit, id string) (hit, error) {
	one, err := a.site.Fabric.Addresses.Find(ctx, anyCaller(v), id)
	if err != nil {
		return hit{}, err
	}
	return hit{Title: one.Path(), Note: "Address", URL: v.thingURL(one.Type, one.ResourceID)}, nil
}

func (a *searchPages) clientWithID(ctx context.Context, v *visit, id string) (hit, error) {
	c, err := a.Clients.Clients.Find(ctx, id)
	if err != nil {
		return hit{}, err
	}
	if c.ProjectID != v.project.ID {
		return hit{}, problem.NoSuch("client")
	}
	row := v.clientRow(c)
	return hit{Title: row.Title, Note: "OAuth client", URL: row.URL}, nil
}

func (a *searchPages) keyWithID(ctx context.Context, v *visit, id string) (hit, error) {
	k, err := a.site.Fabric.APIKeys.Find(ctx, v.project.ID, id)
	if err != nil {
		return hit{}, err
	}
	row := v.keyRow(k)
	return hit{Title: row.Title, Note: "API key", URL: row.URL}, nil
}

func (a *searchPages) webhookWithID(ctx context.Context, v *visit, id string) (hit, error) {
	w, err := a.site.Fabric.Webhooks.Find(ctx, v.project.ID, id)
	if err != nil {
		return hit{}, err
	}
	row := v.webhookRow(w)
	return hit{Title: row.Title, Note: "Webhook", URL: row.Path}, nil
}

func (a *searchPages) callWithID(ctx context.Context, v *visit, id string) (hit, error) {
	if a.Calls == nil {
		return hit{}, problem.NoSuch("call")
	}
	r, err := a.Calls.Find(ctx, v.project.ID, "", id)
	if err != nil {
		return hit{}, err
	}
	return hit{
		Title: cmp.Or(between(v.words(), names.Party(r.From), names.Party(r.To)), r.ID), // both may be erased
		Note:  "Call",
		URL:   v.base() + "/calls/" + r.ID,
	}, nil
}
