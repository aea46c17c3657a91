package declared

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A key is an API key as files describe it.
type key struct {
	ID      string
	Name    string
	Scopes  []string
	Expires string // a day or a time; "" means never
}

// keys describes API keys. Pruning a key revokes it.
func (d *Declarer) keys() noun[key] {
	return noun[key]{
		kind: "key",
		by:   "name",
		fields: func(k *key) []field {
			return []field{
				{"name", &k.Name},
				{"scopes", &k.Scopes},
				{"expires_at", &k.Expires},
			}
		},

		id:     func(k key) string { return k.ID },
		name:   func(k key) string { return k.Name },
		fresh:  func() key { return key{} },
		list:   d.listKeys,
		settle: (*key).settle,

		check: func(_ context.Context, k key, isNew bool) error {
			return d.c.Fabric.APIKeys.Check(k.input(key{}), isNew)
		},

		create: func(ctx context.Context, projectID string, k key) (made, error) {
			created, secret, err := d.c.Fabric.APIKeys.Create(ctx, projectID, k.input(key{}), nil)
			if err != nil {
				return made{}, err
			}
			return made{id: created.ID, secret: secret}, nil
		},

		update: func(ctx context.Context, projectID string, old, k key) error {
			_, err := d.c.Fabric.APIKeys.Update(ctx, projectID, k.ID, k.input(old), nil)
			return err
		},

		remove: func(ctx context.Context, projectID string, k key) error {
			return d.c.Fabric.APIKeys.Revoke(ctx, projectID, k.ID)
		},
	}
}

// listKeys returns the keys that are not revoked. A file can use the name of a revoked key again.
func (d *Declarer) listKeys(ctx context.Context, projectID string) (all []key, err error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.APIKey], error) {
		return d.c.Fabric.APIKeys.List(ctx, projectID, q)
	})
	if err != nil {
		return nil, err
	}

	for _, stored := range found {
		if !stored.Revoked.IsZero() {
			continue
		}
		k := key{ID: stored.ID, Name: stored.Name}
		for _, scope := range stored.Scopes {
			k.Scopes = append(k.Scopes, string(scope))
		}
		if !stored.Expires.IsZero() {
			k.Expires = stored.Expires.UTC().Format(time.RFC3339)
		}
		all = append(all, k)
	}
	return all, nil
}

// settle normalizes the scopes and the expiry to the form in which they are stored.
func (k *key) settle() error {
	var scopes []string // without duplicates
	for _, name := range k.Scopes {
		scope, ok := fabric.ParseScope(name)
		if !ok {
			return problem.BadParam("scopes", "unknown scope %q; known are %s", name, joinSorted(fabric.Scopes()))
		}
		if !slices.Contains(scopes, string(scope)) {
			scopes = append(scopes, string(scope))
		}
	}
	k.Scopes = scopes

	if k.Expires == "" || k.Expires == "never" {
		k.Expires = ""
		return nil
	}

	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if expires, err := time.Parse(layout, k.Expires); err == nil {
			k.Expires = expires.UTC().Format(time.RFC3339)
			return nil
		}
	}

	return problem.BadParam("expires_at",
		"needs a day or time, such as 2030-01-31 or 2030-01-31T12:00:00Z, or never; it is %q", k.Expires)
}

// input returns the changes from old to k, which must be settled.
func (k key) input(old key) fabric.APIKeyInput {
	in := fabric.APIKeyInput{Name: changed(old.Name, k.Name)}
	if !slices.Equal(old.Scopes, k.Scopes) {
		for _, s := range k.Scopes {
			in.Scopes = append(in.Scopes, fabric.Scope(s))
		}
	}
	if old.Expires != k.Expires {
		in.Expires = new(time.Time)
		if k.Expires != "" {
			*in.Expires, _ = time.Parse(time.RFC3339, k.Expires) // settle wrote this format
		}
	}
	return in
}

// joinSorted joins names with commas, sorted.
func joinSorted[T ~string](names []T) string {
	var texts []string
	for _, n := range names {
		texts = append(texts, string(n))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
