package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// A Summary describes a complete export.
type Summary struct {
	Counts map[string]int // number of records by kind
	// Left counts the things that an export cannot contain, by their description.
	Left map[string]int
}

// ExportConfig configures [Export].
type ExportConfig struct {
	Fabric   *fabric.Fabric
	IDP      *idp.Provider
	Version  string           // version of selvage
	Now      time.Time        // time for the header
	Projects []fabric.Project // projects to export
	Step     func()           // called after each record

	// Rules returns the retention rules of a project.
	Rules func(ctx context.Context, projectID string) ([]recordings.Rule, error)
}

// Export writes projects, and the things in them that [Kinds] lists, to w. If a server changes
// something during the export, the file contains it as it was either before or after the change.
func Export(ctx context.Context, w io.Writer, c ExportConfig) (Summary, error) {
	out := bufio.NewWriter(w)
	e := &exporter{
		c:   c,
		enc: json.NewEncoder(out),
		sum: Summary{Counts: make(map[string]int), Left: make(map[string]int)},
	}
	e.enc.SetEscapeHTML(false)
	header := Header{
		Kind:    Format,
		Version: Version,
		Created: c.Now.UTC(),
		By:      c.Version,
	}
	if err := e.enc.Encode(header); err != nil {
		return e.sum, fmt.Errorf("writing export: %w", err)
	}

	parts := []func(context.Context, fabric.Project) error{
		e.project,
		e.keys,
		e.clients,
		e.subscribers,
		e.resources,
		e.numbers,
		e.webhooks,
		e.upstreams,
		e.ingestKeys,
		e.rules,
	}
	for _, p := range c.Projects {
		for _, writePart := range parts {
			if err := writePart(ctx, p); err != nil {
				return e.sum, fmt.Errorf("exporting project %s: %w", p.ID, err)
			}
		}
	}

	if err := e.enc.Encode(End{kindEnd, e.records}); err != nil {
		return e.sum, fmt.Errorf("writing export: %w", err)
	}
	return e.sum, out.Flush()
}

// An exporter writes records and counts them.
type exporter struct {
	c       ExportConfig
	enc     *json.Encoder
	sum     Summary
	records int
}

// write writes a record.
func (e *exporter) write(kind string, record any) error {
	if err := e.enc.Encode(record); err != nil {
		return err
	}
	e.records++
	e.sum.Counts[kind]++
	e.c.Step()
	return nil
}

func (e *exporter) project(_ context.Context, p fabric.Project) error {
	if p.Logo != "" || p.DarkLogo != "" {
		e.sum.Left["logo"]++
	}
	return e.write(kindProject, Project{kindProject, p})
}

func (e *exporter) keys(ctx context.Context, p fabric.Project) error {
	return each(ctx, p.ID, e.c.Fabric.APIKeys.List, func(k fabric.APIKey) error {
		expired := !k.Expires.IsZero() && !k.Expires.After(e.c.Now)
		if expired || !k.Revoked.IsZero() {
			return nil
		}
		if k.OldHash != "" && k.OldUntil.After(e.c.Now) {
			e.sum.Left["previous secret of an API key"]++
		}

		return e.write(kindKey, Key{
			Kind:      kindKey,
			ID:        k.ID,
			ProjectID: p.ID,
			Name:      k.Name,
			Prefix:    k.Prefix,
			Hash:      k.Hash,
			Scopes:    scopeNames(k.Scopes),
			Expires:   k.Expires,
			Created:   k.Created,
		})
	})
}

func scopeNames(scopes []fabric.Scope) (names []string) {
	for _, s := range scopes {
		names = append(names, string(s))
	}
	return names
}

func (e *exporter) clients(ctx context.Context, p fabric.Project) error {
	return each(ctx, p.ID, e.c.IDP.Clients.List, func(c idp.Client) error {
		// A client that registered itself authenticates with its registration access token, which
		// only this installation can check.
		if c.RegisteredBy != "" {
			e.sum.Left["client that registered itself"]++
			return nil
		}
		if c.Logo != "" || c.DarkLogo != "" {
			e.sum.Left["logo"]++
		}
		if c.ValidOldSecret(e.c.Now).Hash != "" {
			e.sum.Left["previous secret of a client"]++
		}

		return e.write(kindClient, Client{
			Kind:         kindClient,
			ID:           c.ID,
			ProjectID:    p.ID,
			Name:         c.Name,
			Type:         c.Type,
			Profile:      c.Profile,
			AuthMethod:   c.AuthMethod,
			SecretHash:   c.SecretHash,
			FirstParty:   c.FirstParty,
			PKCEOptional: c.PKCEOptional,
			RedirectURIs: c.RedirectURIs,
			LogoutURIs:   c.LogoutURIs,
			Grants:       c.Grants,
			Scopes:       c.Scopes,
			AccessToken:  c.AccessToken,
			IDTokenAlg:   string(c.IDTokenAlg),
			Metadata:     c.Metadata,
			Created:      c.Created,
		})
	})
}

func (e *exporter) subscribers(ctx context.Context, p fabric.Project) error {
	return each(ctx, p.ID, e.c.Fabric.Subscribers.List, func(s fabric.Subscriber) error {
		address, err := e.address(ctx, p.ID, s.ID)
		if err != nil {
			return err
		}

		var claims *fabric.StandardClaims
		if !reflect.ValueOf(s.Claims).IsZero() {
			claims = &s.Claims
		}

		return e.write(kindSubscriber, Subscriber{
			Kind:          kindSubscriber,
			ID:            s.ID,
			ProjectID:     p.ID,
			Email:         s.Email,
			EmailVerified: s.Verified,
			Reference:     s.Reference,
			PasswordHash:  s.PasswordHash,
			Person:        s.Person,
			Claims:        claims,
			Disabled:      s.Disabled,
			RecordCalls:   s.RecordCalls,
			Forwarding:    s.Forwarding,
			Address:       address,
			Created:       s.Created,
		})
	})
}

// handler is the member that holds the id of a resource's handler.
const handler = "calling_handler_resource_id"

// resources writes resources without a handler first, because they may be the handlers of other
// resources.
func (e *exporter) resources(ctx context.Context, p fabric.Project) error {
	for _, handled := range []bool{false, true} {
		for _, k := range e.c.Fabric.Resources.Kinds().All() {
			list := func(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.Resource], error) {
				return e.c.Fabric.Resources.List(ctx, projectID, k, q)
			}
			err := each(ctx, p.ID, list, func(r fabric.Resource) error {
				if (r.Fields.Text(handler) != "") != handled {
					return nil
				}
				return e.resource(ctx, r)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *exporter) resource(ctx context.Context, r fabric.Resource) error {
	address, err := e.address(ctx, r.ProjectID, r.ID)
	if err != nil {
		return err
	}
	if r.Secrets != "" {
		e.sum.Left["secrets of a "+r.Type]++
	}

	return e.write(kindResource, Resource{
		Kind:      kindResource,
		ID:        r.ID,
		ProjectID: r.ProjectID,
		Type:      r.Type,
		Fields:    r.Fields,
		Secrets:   r.Secrets != "",
		Address:   address,
		Created:   r.Created,
	})
}

// address returns the name of a subscriber's or resource's first address.
func (e *exporter) address(ctx context.Context, projectID, id string) (string, error) {
	first, err := e.c.Fabric.Resources.ListAddresses(ctx, projectID, id, page.Query{Size: 1})
	if err != nil {
		return "", err
	}
	if len(first.Items) == 0 {
		return "", nil
	}
	return first.Items[0].Name, nil
}

// each calls do for each item of a project's list.
func each[T any](
	ctx context.Context,
	projectID string,
	list func(context.Context, string, page.Query) (page.Page[T], error),
	do func(T) error,
) error {
	q := page.Query{Size: 500}
	for {
		found, err := list(ctx, projectID, q)
		if err != nil {
			return err
		}
		for _, item := range found.Items {
			if err := do(item); err != nil {
				return err
			}
		}
		if found.Next == "" {
			return nil
		}
		q.From = found.Next
	}
}
