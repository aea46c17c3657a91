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

const (
	addressColumns = `id, project_id, resource_id, type, context, name, display_name, channels, created`

	// reachable are the addresses but those of disabled subscribers. It stands as it is
	// in the indexes.
	reachable = `hidden = 0`
)

func scanAddress(row scanner) (a fabric.Address, err error) {
	var created int64
	var channels string
	err = row.Scan(&a.ID, &a.ProjectID, &a.ResourceID, &a.Type, &a.Context, &a.Name, &a.DisplayName,
		&channels, &created)
	a.Created, a.Channels = moment(created), strings.Fields(channels)
	return a, found(err, "address")
}

// insertAddress inserts an address whose name the unique index finds free.
func (t tx) insertAddress(ctx context.Context, a fabric.Address, hidden bool) error {
	res, err := t.Exec(ctx, `INSERT INTO addresses (`+
		addressColumns+`, hidden) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (project_id, context, name) DO NOTHING`,
		a.ID, a.ProjectID, a.ResourceID, a.Type, a.Context, a.Name, a.DisplayName,
		strings.Join(a.Channels, " "), micros(a.Created), flag(hidden))
	return inserted(res, err, "address", problem.Taken("address", "Address has already been taken"))
}

// ListAddresses returns a page of the addresses that a filter lets through.
func (s *Resources) ListAddresses(ctx context.Context, projectID string, f fabric.AddressFilter, q page.Query) (p page.Page[fabric.Address], err error) {
	if f.IDs != nil && len(f.IDs) == 0 {
		return p, nil
	}
	l := listing[fabric.Address]{
		thing: "addresses", columns: addressColumns, from: "addresses", where: filtered(projectID, f),
		key: []string{"id"}, start: startAt(q.From), desc: f.Descending,
		scan: scanAddress, id: func(a fabric.Address) string { return a.ID },
	}
	if pattern := contains(f.DisplayName); pattern != "" {
		l.checks = []check{{`LOWER(display_name) LIKE $%d ESCAPE '\'`, []any{pattern}}}
	}
	if f.ByName {
		l.key = []string{"name", "id"}
		if l.start, err = s.startAtName(ctx, projectID, q.From); err != nil {
			return p, err
		}
	}
	return l.page(ctx, s.read(), q)
}

func filtered(projectID string, f fabric.AddressFilter) where {
	w := where{conditions: []string{reachable}}
	w.and(`project_id = $%d`, projectID)
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
		w.conditions = append(w.conditions, `id IN (`+params(len(w.args), len(f.IDs))+`)`)
		for _, id := range f.IDs {
			w.args = append(w.args, id)
		}
	}
	return w
}

// mostSought is longer than any text that is searched, which no part of it can be; a pattern
// of 50,000 bytes is an error in SQLite.
const mostSought = 8 << 10

// contains returns the LIKE pattern of a text in small letters that holds part, ""
// for "". Small letters are what LOWER makes of A to Z, and of them alone.
func contains(part string) string {
	if part == "" {
		return ""
	}
	if len(part) > mostSought {
		part = strings.ToValidUTF8(part[:mostSought], "")
	}
	small := []byte(part)
	for i, b := range small {
		if 'A' <= b && b <= 'Z' {
			small[i] += 'a' - 'A'
		}
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(string(small)) + "%"
}

// startAtName returns the key of a row in a listing by name.
func (s *Resources) startAtName(ctx context.Context, projectID, id string) ([]any, error) {
	if id == "" {
		return nil, nil
	}
	var name string
	err := found(s.read().Row(ctx, `SELECT name FROM addresses WHERE id = $2 AND project_id = $1`, projectID,
		id).Scan(&name), "address")
	if errors.Is(err, problem.NotFound) {
		return nil, &problem.Error{Kind: problem.Invalid, Code: "page_token_is_invalid", Param: "page_token",
			Message: "page_token is invalid"}
	}
	return []any{name, id}, err
}

// FindAddress finds an address that can be reached.
func (s *Resources) FindAddress(ctx context.Context, projectID, id string) (fabric.Address, error) {
	return scanAddress(s.read().Row(ctx,
		`SELECT `+addressColumns+` FROM addresses WHERE id = $2 AND project_id = $1 AND `+reachable, projectID, id))
}

// FindAddressByName finds an address by its context and name.
func (s *Resources) FindAddressByName(ctx context.Context, projectID, context, name string) (fabric.Address, error) {
	return scanAddress(s.read().Row(ctx,
		`SELECT `+addressColumns+` FROM addresses WHERE project_id = $1 AND context = $2 AND name = $3`,
		projectID, context, name))
}

// CountAddresses tells how many of the ids are addresses of a project that can
// be reached.
func (s *Resources) CountAddresses(ctx context.Context, projectID string, ids []string) (n int, err error) {
	args := []any{projectID}
	for _, id := range ids {
		args = append(args, id)
	}
	err = s.read().Row(ctx, `SELECT COUNT(*) FROM addresses WHERE id IN (`+
		params(1, len(ids))+`) AND project_id = $1 AND `+reachable, args...).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("counting addresses: %w", err)
	}
	return n, nil
}

const withAddresses = `SELECT s.id, s.project_id, COALESCE(s.email, ''), COALESCE(s.reference, ''), s.password_hash, s.first_name, s.last_name,
	s.display_name, s.job_title, s.time_zone, s.country, s.company_name, s.region, s.claims, s.email_verified, s.disabled, s.epoch, s.created, s.updated,
	COALESCE(a.id, ''), COALESCE(a.type, ''), COALESCE(a.context, ''), COALESCE(a.name, ''), COALESCE(a.display_name, ''), COALESCE(a.channels, ''), COALESCE(a.created, 0)
	FROM subscribers s LEFT JOIN addresses a ON a.resource_id = s.id WHERE s.id = $2 AND s.project_id = $1 ORDER BY a.id`

// SubscriberWithAddresses finds a subscriber and its addresses by one query.
func (s *Resources) SubscriberWithAddresses(ctx context.Context, projectID, id string) (sub fabric.Subscriber, all []fabric.Address, err error) {
	rows, err := s.read().Query(ctx, withAddresses, projectID, id)
	if err != nil {
		return sub, nil, fmt.Errorf("reading subscriber: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		a := fabric.Address{ProjectID: projectID, ResourceID: id}
		var created int64
		var channels string
		sub, err = scanSubscriber(rows, &a.ID, &a.Type, &a.Context, &a.Name, &a.DisplayName, &channels, &created)
		if err != nil {
			return sub, nil, err
		}
		if a.Created, a.Channels = moment(created), strings.Fields(channels); a.ID != "" {
			all = append(all, a)
		}
	}
	if err := rows.Err(); err != nil {
		return sub, nil, fmt.Errorf("reading subscriber: %w", err)
	}
	if sub.ID == "" {
		return sub, nil, problem.NoSuch("subscriber")
	}
	return sub, all, nil
}
