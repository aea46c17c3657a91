package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// reachable excludes the addresses of disabled subscribers. The indexes contain the same
// expression.
const reachable = `hidden = 0`

var addressTable = table[fabric.Address]{
	name:    "addresses",
	thing:   "address",
	columns: `id, project_id, resource_id, type, context, name, display_name, channels, created`,
	fields: func(a *fabric.Address) []any {
		return []any{&a.ID, &a.ProjectID, &a.ResourceID, &a.Type, &a.Context, &a.Name, &a.DisplayName,
			&a.Channels, &a.Created}
	},
}

// insertAddress inserts an address unless the project has another address with the same context and
// name.
func (t tx) insertAddress(ctx context.Context, a fabric.Address, hidden bool) error {
	res, err := t.Exec(ctx, `INSERT INTO addresses (`+addressTable.columns+`, hidden)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (project_id, context, name) DO NOTHING`,
		a.ID, a.ProjectID, a.ResourceID, a.Type, a.Context, a.Name, a.DisplayName,
		strings.Join(a.Channels, " "), micros(a.Created), flag(hidden))
	return requireInserted(res, err, "address", problem.Taken("address", "Address has already been taken"))
}

// ListAddresses returns a page of the addresses that match a filter.
func (s *Resources) ListAddresses(
	ctx context.Context, projectID string, f fabric.AddressFilter, q page.Query,
) (p page.Page[fabric.Address], err error) {
	if f.IDs != nil && len(f.IDs) == 0 {
		return p, nil
	}
	l := addressTable.listing(q.From)
	l.where = indexedConditions(projectID, f)
	l.desc = f.Descending
	if f.DisplayName != "" {
		l.checks = []check{spelled(`display_name`, f.DisplayName)}
	}
	if f.ByName {
		l.key = []string{"name", "id"}
		if l.start, err = s.startAtName(ctx, projectID, q.From); err != nil {
			return p, err
		}
	}
	return l.page(ctx, s.read(), q)
}

// indexedConditions returns those conditions of a filter that have an index.
func indexedConditions(projectID string, f fabric.AddressFilter) where {
	w := where{conditions: []string{reachable}}
	if f.ResourceID == "" {
		w.and(`project_id = $%d`, projectID)
	} else { // prevent SQLite from using the index by project, which it could prefer to the index by resource
		w.and(`project_id || '' = $%d`, projectID)
	}

	for _, c := range []struct{ condition, value string }{
		{`type = $%d`, f.Type},
		{`name = $%d`, f.Name},
		{`resource_id = $%d`, f.ResourceID},
	} {
		if c.value != "" {
			w.and(c.condition, c.value)
		}
	}

	if len(f.IDs) > 0 {
		w.in(`id`, f.IDs)
	}
	return w
}

// maxSought is longer than any text that is searched, so a longer part cannot match. SQLite rejects
// patterns of more than 50,000 bytes.
const maxSought = 8 << 10

// contains returns a LIKE pattern that matches lower-case text containing part, or "" if part is
// "".
func contains(part string) string {
	if part == "" {
		return ""
	}
	return "%" + literally(part) + "%"
}

// startingWith returns a LIKE pattern that matches lower-case text starting with part.
func startingWith(part string) string { return literally(part) + "%" }

// literally returns the piece of a LIKE pattern that matches only text itself, in lower case.
func literally(text string) string {
	if len(text) > maxSought {
		text = strings.ToValidUTF8(text[:maxSought], "")
	}
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(lower(text))
}

// lower converts the letters A to Z to lower case and leaves all others unchanged, as LOWER does in
// both databases.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// startAtName returns the key at which a listing by name starts, for the row with the given id.
func (s *Resources) startAtName(ctx context.Context, projectID, id string) ([]any, error) {
	if id == "" {
		return nil, nil
	}
	var name string
	err := s.read().Row(ctx, `SELECT name FROM addresses WHERE id = $2 AND project_id = $1`, projectID, id).Scan(&name)
	err = checkRow(err, "address")
	if errors.Is(err, problem.NotFound) {
		return nil, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "page_token_is_invalid",
			Param:   "page_token",
			Message: "page_token is invalid",
		}
	}
	if err != nil {
		return nil, err
	}
	return []any{name, id}, nil
}

// FindAddress finds a reachable address.
func (s *Resources) FindAddress(ctx context.Context, projectID, id string) (fabric.Address, error) {
	return addressTable.find(ctx, s.read(), `id = $2 AND project_id = $1 AND `+reachable, projectID, id)
}

// FindAddressByName finds an address by its context and name.
func (s *Resources) FindAddressByName(ctx context.Context, projectID, context, name string) (fabric.Address, error) {
	return addressTable.find(ctx, s.read(), `project_id = $1 AND context = $2 AND name = $3`, projectID, context, name)
}

// CountAddresses returns how many of the ids belong to reachable addresses in a project.
func (s *Resources) CountAddresses(ctx context.Context, projectID string, ids []string) (n int, err error) {
	w := where{conditions: []string{reachable}}
	w.in(`id`, ids)
	w.and(`project_id = $%d`, projectID)
	err = s.read().Row(ctx, `SELECT COUNT(*) FROM addresses WHERE `+w.String(), w.args...).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("counting addresses: %w", err)
	}
	return n, nil
}

var withAddresses = `SELECT ` + qualified("s", subscriberTable.columns) + `,
	COALESCE(a.id, ''), COALESCE(a.type, ''), COALESCE(a.context, ''), COALESCE(a.name, ''),
	COALESCE(a.display_name, ''), COALESCE(a.channels, ''), COALESCE(a.created, 0)
	FROM subscribers s LEFT JOIN addresses a ON a.resource_id = s.id
	WHERE s.id = $2 AND s.project_id = $1 ORDER BY a.id`

// SubscriberWithAddresses finds a subscriber together with its addresses, in one query.
func (s *Resources) SubscriberWithAddresses(
	ctx context.Context, projectID, id string,
) (sub fabric.Subscriber, addresses []fabric.Address, err error) {
	scan := func(row scanner) (a fabric.Address, err error) {
		a.ProjectID = projectID
		a.ResourceID = id
		sub, err = subscriberTable.scanWith(row, &a.ID, &a.Type, &a.Context, &a.Name, &a.DisplayName,
			scanTarget(&a.Channels), scanTarget(&a.Created))
		return a, err
	}

	addresses, err = gather(ctx, s.read(), "reading subscriber", scan, withAddresses, projectID, id)
	if err != nil {
		return sub, nil, err
	}
	if len(addresses) == 0 {
		return sub, nil, problem.NoSuch("subscriber")
	}
	if addresses[0].ID == "" { // the subscriber has no address
		addresses = nil
	}
	return sub, addresses, nil
}
