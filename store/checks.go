package store

import (
	"context"
	"fmt"
	"strings"
)

// A check is a condition that no index has, in which $%d stands for an argument, or $%[2]d for
// the second: rows are read and looked at.
type check struct {
	condition string
	args      []any
}

// check adds a check.
func (w *where) check(c check) {
	var numbers []any
	for _, arg := range c.args {
		w.args = append(w.args, arg)
		numbers = append(numbers, len(w.args))
	}
	w.conditions = append(w.conditions, fmt.Sprintf(c.condition, numbers...))
}

// mostChecked bounds the rows that are looked at for one page of a listing with checks. What
// is left is of the next page, so that none takes long, however rare it is what fits.
const mostChecked = 5000

// end returns the key of the row before which a page with checks ends at the latest, on its
// way from the start; nil where so many rows are not left.
func (l listing[T]) end(ctx context.Context, t tx, backward bool) ([]any, error) {
	if len(l.checks) == 0 {
		return nil, nil
	}
	l.checks, l.columns = nil, strings.Join(l.key, ", ")
	q := l.query(1, backward)
	scan := func(row scanner) (key []any, err error) {
		texts, into := make([]string, len(l.key)), make([]any, len(l.key))
		for i := range texts {
			into[i] = &texts[i]
		}
		err = row.Scan(into...)
		for _, text := range texts {
			key = append(key, text)
		}
		return key, err
	}
	found, err := gather(ctx, t, "listing "+l.thing, scan, q.sql+fmt.Sprintf(" OFFSET %d", mostChecked), q.args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// idOf returns the id that a key ends with, "" of none.
func idOf(key []any) string {
	if key == nil {
		return ""
	}
	id, _ := key[len(key)-1].(string)
	return id
}
