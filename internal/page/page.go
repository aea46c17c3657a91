// Package page describes one page of a list. A page is found by the id of its first row (keyset
// pagination), so reading the last page of a long list costs no more than reading the first.
package page

import (
	"context"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// Limits on the size of a page.
const (
	DefaultSize = 50
	MaxSize     = 1000
)

// A Query selects one page.
type Query struct {
	Size int    // the maximum number of rows, from 1 to MaxSize
	From string // the id of the first row; "" means the first page
}

// A Page is the result of a [Query]. Next and Prev are the ids of the first rows of the next and
// the previous page, or "" if there is none.
type Page[T any] struct {
	Items      []T
	Next, Prev string
}

// Every returns all rows of a list. Use it only for lists that are small, or that are needed as a
// whole.
func Every[T any](ctx context.Context, list func(context.Context, Query) (Page[T], error)) ([]T, error) {
	var items []T
	q := Query{Size: MaxSize}
	for {
		p, err := list(ctx, q)
		if err != nil {
			return nil, err
		}
		items = append(items, p.Items...)
		if p.Next == "" {
			return items, nil
		}
		q.From = p.Next
	}
}

// Token returns the page token for the row with the given id: "PA" and the UUID, or "PA:" and the id
// of an imported client.
func Token(id string) string {
	if _, err := uuid.Parse(id); err != nil || len(id) != uuidLength {
		return "PA:" + id
	}
	return "PA" + id
}

// uuidLength is the length of a UUID in the form with hyphens.
const uuidLength = 36

// imported matches the ids of imported clients, which need not be UUIDs.
var imported = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,64}$`)

// ParseToken returns the row id that a page token contains. It accepts UUIDs only in the form with
// hyphens, and returns them in lowercase.
func ParseToken(token string) (id string, ok bool) {
	if id, found := strings.CutPrefix(token, "PA:"); found {
		return id, imported.MatchString(id)
	}
	rest, found := strings.CutPrefix(token, "PA")
	if !found || len(rest) != uuidLength {
		return "", false
	}
	u, err := uuid.Parse(rest)
	if err != nil {
		return "", false
	}
	return u.String(), true
}
