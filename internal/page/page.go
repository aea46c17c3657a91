// Package page describes one page of a list. Pages are found by the id of their first row
// (keyset paging), so a page costs the same however deep it lies.
package page

import (
	"context"
	"strings"

	"github.com/google/uuid"
)

// The sizes of a page.
const (
	DefaultSize = 50
	MaxSize     = 1000
)

// A Query selects one page.
type Query struct {
	Size int    // the most rows, from 1 to MaxSize
	From string // the id of the first row; "" means the first page
}

// A Page is the result of a [Query]. Next and Prev are the ids of the first rows of the
// neighboring pages, "" at the ends.
type Page[T any] struct {
	Items      []T
	Next, Prev string
}

// Every returns all rows of a list. It is meant for small lists, or lists needed whole.
func Every[T any](ctx context.Context, list func(context.Context, Query) (Page[T], error)) (all []T, err error) {
	q := Query{Size: MaxSize}
	for {
		p, err := list(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if p.Next == "" {
			return all, nil
		}
		q.From = p.Next
	}
}

// Token returns the page token that clients see for a row's id: "PA" and the UUID.
func Token(id string) string { return "PA" + id }

// ParseToken returns the row id in a page token, in canonical form.
func ParseToken(token string) (id string, ok bool) {
	rest, found := strings.CutPrefix(token, "PA")
	if !found || len(rest) != 36 {
		return "", false
	}
	u, err := uuid.Parse(rest)
	return u.String(), err == nil
}
