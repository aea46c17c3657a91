package store

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// SearchSubscribers returns a page of the subscribers whose email, reference or name begins with a
// text, or with each of its words. Matches by email come first, followed by matches by each kind of
// name, by reference, and by the host of the email. Each group is read in the order of an index, so
// that the cost of a page does not depend on the number of subscribers.
//
// The number of rows read for a page is limited. If few of them match, the page is shorter, or even
// empty, and another page follows. A page is identified by the id of its first row and the number
// of the term that found the row.
func (s *Subscribers) SearchSubscribers(
	ctx context.Context, projectID, text string, q page.Query,
) (p page.Page[fabric.Subscriber], err error) {
	if text == "" {
		return s.ListSubscribers(ctx, projectID, q)
	}
	if len(text) > maxSought {
		return p, nil
	}
	f := finder{tx: s.read(), project: projectID, search: newSearch(text)}
	start, err := f.startAt(ctx, q.From)
	if err != nil {
		return p, err
	}

	found, more, err := f.walk(ctx, start, q.Size+1, forward)
	if err != nil {
		return p, err
	}
	if len(found) > q.Size {
		found, more = found[:q.Size], &found[q.Size]
	}
	for _, row := range found {
		p.Items = append(p.Items, row.Subscriber)
	}
	p.Next = more.String()
	if start == nil {
		return p, nil
	}

	before, more, err := f.walk(ctx, start, q.Size, backward)
	if more == nil && len(before) > 0 {
		more = &before[len(before)-1]
	}
	p.Prev = more.String()
	return p, err
}

// A finder searches the subscribers of a project.
type finder struct {
	tx      tx
	project string
	search
}

// A foundSubscriber is a subscriber and the number of the term that found it.
type foundSubscriber struct {
	fabric.Subscriber
	term int
}

// String returns the From of the page that begins with f.
func (f *foundSubscriber) String() string {
	if f == nil {
		return ""
	}
	return f.ID + "." + strconv.Itoa(f.term)
}

// startAt finds the first row of a page. It returns nil for the first page, and if the row no
// longer exists or no longer matches.
func (f finder) startAt(ctx context.Context, from string) (*foundSubscriber, error) {
	id, number, _ := strings.Cut(from, ".")
	term, err := strconv.Atoi(number)
	if err != nil || term < 0 || term >= len(f.terms) {
		return nil, nil
	}
	sub, err := subscriberTable.find(ctx, f.tx, `id = $2 AND project_id = $1`, f.project, id)
	if errors.Is(err, problem.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !f.terms[term].matches(sub) {
		return nil, nil
	}
	return &foundSubscriber{sub, term}, nil
}

const (
	maxRead   = 500 // maximum number of rows that walk checks
	readBatch = 200 // maximum number of rows that a query reads
)

// walk returns the first n matches from a row on. If dir is backward, it returns the nearest n
// matches before the row. If walk stops before the end, more is not nil. After n matches, more is the
// last of them. After maxRead rows, it is the row at which to resume: forward, the first row that
// walk has not checked; backward, the last row that it has checked.
func (f finder) walk(
	ctx context.Context, from *foundSubscriber, n int, dir direction,
) (found []foundSubscriber, more *foundSubscriber, err error) {
	left := maxRead
	for row, err := range f.rowsOfTerms(ctx, from, n, dir) {
		if err != nil {
			return nil, nil, err
		}
		if left == 0 && dir == forward {
			return found, &row, nil
		}
		left--
		if f.isFirst(row.term, row.Subscriber) {
			found = append(found, row)
		}
		if len(found) == n || left == 0 && dir == backward {
			return found, &row, nil
		}
	}
	return found, nil, nil
}

// rowsOfTerms iterates over the rows of one term after another. It begins at the row from or, if
// dir is backward, before this row. n is an estimate of how many rows are needed.
func (f finder) rowsOfTerms(
	ctx context.Context, from *foundSubscriber, n int, dir direction,
) iter.Seq2[foundSubscriber, error] {
	return func(yield func(foundSubscriber, error) bool) {
		term, step := 0, 1
		if from != nil {
			term = from.term
		}
		if dir == backward {
			step = -1
		}

		for ; term >= 0 && term < len(f.terms); term += step {
			for row, err := range f.rowsOfTerm(ctx, term, from, n, dir) {
				if !yield(row, err) || err != nil {
					return
				}
			}
			from = nil
		}
	}
}

// rowsOfTerm is like rowsOfTerms, for a single term. It reads rows in batches. A batch begins with
// the last row of the previous batch or, if dir is backward, with the row after that.
func (f finder) rowsOfTerm(
	ctx context.Context, term int, from *foundSubscriber, n int, dir direction,
) iter.Seq2[foundSubscriber, error] {
	return func(yield func(foundSubscriber, error) bool) {
		for size := min(n+1, readBatch); ; size = readBatch {
			rows, err := f.read(ctx, term, from, size, dir)
			if err != nil {
				yield(foundSubscriber{}, err)
				return
			}

			full := len(rows) == size
			if full {
				from = &foundSubscriber{rows[size-1], term}
			}
			if full && dir == forward {
				rows = rows[:size-1]
			}

			for _, sub := range rows {
				if !yield(foundSubscriber{sub, term}, nil) {
					return
				}
			}

			if !full {
				return
			}
		}
	}
}

// read returns rows of one term in the order of its index. It begins at the row from or, if from is
// nil, at the first row. If dir is backward, it omits the row from.
//
// Rows that have the same value as from need a separate query, because no index can be searched by
// two columns if the first one is an expression.
func (f finder) read(
	ctx context.Context, term int, from *foundSubscriber, n int, dir direction,
) (rows []fabric.Subscriber, err error) {
	by := f.terms[term]
	low := by.prefix
	high := by.prefix + last
	above := ">="
	unique := len(by.order) == 1
	if from != nil {
		value := by.valueOf(from.Subscriber)
		switch {
		case dir == backward:
			high = value
		case unique:
			low = value
		default:
			low, above = value, ">"
		}
		if !unique {
			rows, err = f.rowsWithValue(ctx, by, value, from.ID, n, dir)
			if err != nil {
				return nil, err
			}
			if len(rows) == n {
				return rows, nil
			}
		}
	}

	others := f.where(by)
	others.and(by.expression+` `+above+` $%d`, low)
	others.and(by.expression+` < $%d`, high)
	more, err := f.rows(ctx, others, by.order, n-len(rows), dir)
	if err != nil {
		return nil, err
	}
	return slices.Concat(rows, more), nil
}

// rowsWithValue returns the rows of a term that have the given value, from the given id on or, if
// dir is backward, before that id.
func (f finder) rowsWithValue(
	ctx context.Context, by searchTerm, value, id string, n int, dir direction,
) ([]fabric.Subscriber, error) {
	same := f.where(by)
	same.and(by.expression+` = $%d`, value)
	if dir == backward {
		same.and(`id < $%d`, id)
	} else {
		same.and(`id >= $%d`, id)
	}
	return f.rows(ctx, same, []string{"id"}, n, dir)
}

// where returns the conditions that the index of a term requires.
func (f finder) where(by searchTerm) (w where) {
	w.and(`project_id = $%d`, f.project)
	if by.condition != "" {
		w.always(by.condition)
	}
	return w
}

// rows returns the first n rows that fulfill the conditions w, in the given order. If dir is backward,
// the order is reversed.
func (f finder) rows(ctx context.Context, w where, order []string, n int, dir direction) ([]fabric.Subscriber, error) {
	sort := " ASC"
	if dir == backward {
		sort = " DESC"
	}
	w.args = append(w.args, n)
	return subscriberTable.gather(ctx, f.tx, `WHERE `+w.String()+` ORDER BY `+
		strings.Join(order, sort+", ")+sort+` LIMIT $`+strconv.Itoa(len(w.args)), w.args...)
}
