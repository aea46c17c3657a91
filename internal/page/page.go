// Package page describes one page of a list: keyset paging by the id of the row
// that a page begins with, so that a page costs the same however deep it lies.
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

// A Query asks for one page.
type Query struct {
	Size int    // rows at most; 1 to MaxSize
	From string // id of the first row wanted; "" means the first page
}

// A Page is what a store gives for a [Query]. Next and Prev are the ids of the
// first rows of the neighbouring pages, "" at the ends.
type Page[T any] struct {
	Items      []T
	Next, Prev string
}

// Every gathers all pages of a list: for what is small, or needed whole.
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

// Token writes a row's id as the page token that clients see: "PA" and the UUID.
func Token(id string) string { return "PA" + id }

// ParseToken returns the row id of a page token, in canonical form.
func ParseToken(token string) (id string, ok bool) {
	rest, found := strings.CutPrefix(token, "PA")
	if !found || len(rest) != 36 {
		return "", false
	}
	u, err := uuid.Parse(rest)
	return u.String(), err == nil
}
