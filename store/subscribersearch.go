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

// SearchSubscribers returns those of whom an e-mail, a reference or a name begins with a text, or
// each of its words does: by e-mail first, then by one name after the other, each in the order of
// an index, so that a page costs the same however many there are. A page ends at the latest
// when so many were looked at that its rest would take long; then it is shorter, or empty, and
// another follows it. Its beginning is the id of a row and the number of the way to it.
func (s *Subscribers) SearchSubscribers(ctx context.Context, projectID, text string, q page.Query) (p page.Page[fabric.Subscriber], err error) {
	if text == "" {
		return s.ListSubscribers(ctx, projectID, q)
	}
	if len(text) > mostSought { // nobody is called so
		return p, nil
	}
	f := finder{s.read(), projectID, seek(text)}
	start, err := f.startAt(ctx, q.From)
	if err != nil {
		return p, err
	}
	found, more, err := f.walk(ctx, start, q.Size+1, false)
	if err != nil {
		return p, err
	}
	if len(found) > q.Size {
		found, more = found[:q.Size], &found[q.Size]
	}
	for _, one := range found {
		p.Items = append(p.Items, one.Subscriber)
	}
	p.Next = more.String()
	if start == nil {
		return p, nil
	}
	before, more, err := f.walk(ctx, start, q.Size, true)
	if more == nil && len(before) > 0 {
		more = &before[len(before)-1]
	}
	p.Prev = more.String()
	return p, err
}

// A finder finds the subscribers of a project by a text.
type finder struct {
	tx      tx
	project string
	sought
}

// A foundSubscriber is one where a way has it.
type foundSubscriber struct {
	fabric.Subscriber
	way int
}

// String returns what a page that begins with it is asked for by.
func (f *foundSubscriber) String() string {
	if f == nil {
		return ""
	}
	return f.ID + "." + strconv.Itoa(f.way)
}

// startAt finds the row of a page. The first page is asked for by nothing, and by what is
// not there any more.
func (f finder) startAt(ctx context.Context, from string) (*foundSubscriber, error) {
	id, number, _ := strings.Cut(from, ".")
	way, err := strconv.Atoi(number)
	if err != nil || way < 0 || way >= len(f.ways) {
		return nil, nil
	}
	sub, err := scanSubscriber(f.tx.Row(
		ctx, `SELECT `+subscriberColumns+` FROM subscribers WHERE id = $2 AND project_id = $1`, f.project, id))
	if errors.Is(err, problem.NotFound) || err == nil && !f.ways[way].takes(sub) {
		return nil, nil
	}
	return &foundSubscriber{sub, way}, err
}

// mostLooked bounds the rows that one page looks at, and atOnce those of one query.
const mostLooked, atOnce = 500, 200

// walk returns the first n from a row on, or backward those before it, the nearest first. Where
// it has looked at so many rows that it stops, more is the row where to go on: the first that
// was not looked at, backward the last that was.
func (f finder) walk(ctx context.Context, from *foundSubscriber, n int, backward bool) (found []foundSubscriber, more *foundSubscriber, err error) {
	left := mostLooked
	for one, err := range f.rowsOfWays(ctx, from, n, backward) {
		if err != nil {
			return nil, nil, err
		}
		if left == 0 && !backward {
			return found, &one, nil
		}
		left--
		if f.gives(one.way, one.Subscriber) {
			found = append(found, one)
		}
		if len(found) == n || left == 0 && backward {
			return found, &one, nil
		}
	}
	return found, nil, nil
}

// rowsOfWays goes through the rows of one way after the other, from a row on or backward from
// the one before it; n is how many will do for most.
func (f finder) rowsOfWays(ctx context.Context, from *foundSubscriber, n int, backward bool) iter.Seq2[foundSubscriber, error] {
	return func(yield func(foundSubscriber, error) bool) {
		way, step := 0, 1
		if from != nil {
			way = from.way
		}
		if backward {
			step = -1
		}
		for ; way >= 0 && way < len(f.ways); way += step {
			for one, err := range f.rowsOfWay(ctx, way, from, n, backward) {
				if !yield(one, err) || err != nil {
					return
				}
			}
			from = nil
		}
	}
}

// rowsOfWay is rowsOfWays of one way, a query at a time: the next begins with the last row of
// the one before it, backward behind it.
func (f finder) rowsOfWay(ctx context.Context, way int, from *foundSubscriber, n int, backward bool) iter.Seq2[foundSubscriber, error] {
	return func(yield func(foundSubscriber, error) bool) {
		for size := min(n+1, atOnce); ; size = atOnce {
			rows, err := f.read(ctx, way, from, size, backward)
			if err != nil {
				yield(foundSubscriber{}, err)
				return
			}
			full := len(rows) == size
			if full {
				from = &foundSubscriber{rows[size-1], way}
			}
			if full && !backward {
				rows = rows[:size-1]
			}
			for _, sub := range rows {
				if !yield(foundSubscriber{sub, way}, nil) {
					return
				}
			}
			if !full {
				return
			}
		}
	}
}

// read returns rows of one way in its order, from one of them on or from its end; backward
// without that one. Those that are called the same are a query of their own, since no index
// is read by two columns at once where the first is an expression.
func (f finder) read(ctx context.Context, way int, from *foundSubscriber, n int, backward bool) (rows []fabric.Subscriber, err error) {
	b := f.ways[way]
	low, high, above := b.text, b.text+last, ">="
	alone := len(b.order) == 1
	if from != nil {
		at := b.of(from.Subscriber)
		switch {
		case backward:
			high = at
		case alone:
			low = at
		default:
			low, above = at, ">"
		}
		if !alone {
			same := f.where(b)
			same.and(b.value+` = $%d`, at)
			if backward {
				same.and(`id < $%d`, from.ID)
			} else {
				same.and(`id >= $%d`, from.ID)
			}
			if rows, err = f.rows(ctx, same, []string{"id"}, n, backward); err != nil || len(rows) == n {
				return rows, err
			}
		}
	}
	others := f.where(b)
	others.and(b.value+` `+above+` $%d`, low)
	others.and(b.value+` < $%d`, high)
	more, err := f.rows(ctx, others, b.order, n-len(rows), backward)
	return slices.Concat(rows, more), err
}

// where is whom the index of a way has of the project.
func (f finder) where(b beginning) (w where) {
	w.and(`project_id = $%d`, f.project)
	if b.given != "" {
		w.always(b.given)
	}
	return w
}

func (f finder) rows(ctx context.Context, w where, order []string, n int, backward bool) ([]fabric.Subscriber, error) {
	direction := " ASC"
	if backward {
		direction = " DESC"
	}
	w.args = append(w.args, n)
	return gather(ctx, f.tx, "finding subscribers", func(row scanner) (fabric.Subscriber, error) {
		return scanSubscriber(row)
	},
		`SELECT `+subscriberColumns+` FROM subscribers WHERE `+w.String()+` ORDER BY `+
			strings.Join(order, direction+", ")+direction+` LIMIT $`+strconv.Itoa(len(w.args)), w.args...)
}
