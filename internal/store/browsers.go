package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// FindBrowser gives the logins that a browser holds, by project, and when it was
// here last. Those that were ended or have expired are none.
func (s *Store) FindBrowser(ctx context.Context, browser string) (logins map[string]string, seen time.Time, err error) {
	type held struct {
		project, login string
		seen           int64
	}
	all, err := gather(ctx, s.read(), "finding browser", func(row scanner) (h held, err error) {
		return h, row.Scan(&h.project, &h.login, &h.seen)
	}, `SELECT project_id, id, seen FROM login_sessions WHERE browser = $1 AND browser <> '' AND ended = 0 AND expires > $2`, browser, micros(s.now()))
	if err != nil {
		return nil, seen, err
	}
	if len(all) == 0 {
		return nil, seen, problem.NoSuch("browser")
	}
	logins = make(map[string]string, len(all))
	for _, h := range all {
		logins[h.project] = h.login
		if here := moment(h.seen); here.After(seen) {
			seen = here
		}
	}
	return logins, seen, nil
}

// MoveBrowser gives logins, by project, to a browser, and takes all others from
// the one that it was before; either may be "".
func (s *Store) MoveBrowser(ctx context.Context, from, to string, logins map[string]string) error {
	return s.change(ctx, func(t tx) error {
		if from != "" {
			if err := t.Later(ctx, `UPDATE login_sessions SET browser = '' WHERE browser = $1 AND browser <> ''`, from); err != nil {
				return fmt.Errorf("emptying browser: %w", err)
			}
		}
		if to == "" {
			return nil
		}
		for _, project := range slices.Sorted(maps.Keys(logins)) {
			err := t.Later(ctx, `UPDATE login_sessions SET browser = $1, seen = $2 WHERE id = $3 AND project_id = $4`,
				to, micros(s.now()), logins[project], project)
			if err != nil {
				return fmt.Errorf("filling browser: %w", err)
			}
		}
		return nil
	})
}

// SeeBrowser notes that a browser is here now.
func (s *Store) SeeBrowser(ctx context.Context, browser string) error {
	return s.once(ctx, func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE login_sessions SET seen = $2 WHERE browser = $1 AND browser <> ''`, browser, micros(s.now()))
		if err != nil {
			return fmt.Errorf("seeing browser: %w", err)
		}
		return nil
	})
}
