package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// FindBrowser returns the logins that a browser holds, by project, as [idp.BrowserLogins] are
// written, and when it was here last. Those that were ended or have expired are none.
func (s *Logins) FindBrowser(ctx context.Context, browser string) (held map[string]string, seen time.Time, err error) {
	type login struct {
		project, id string
		seen        int64
		place       int
	}
	all, err := gather(ctx, s.read(), "finding browser", func(row scanner) (l login, err error) {
		return l, row.Scan(&l.project, &l.id, &l.seen, &l.place)
	}, `SELECT project_id, id, seen, place FROM login_sessions WHERE browser = $1 AND browser <> '' AND ended = 0 AND expires > $2 ORDER BY place, id`,
		browser, micros(s.now()))
	if err != nil {
		return nil, seen, err
	}
	if len(all) == 0 {
		return nil, seen, problem.NoSuch("browser")
	}
	logins := make(map[string]idp.BrowserLogins, len(all))
	for _, l := range all {
		if len(logins[l.project]) == 0 && l.place > 0 {
			logins[l.project] = idp.BrowserLogins{""} // that in use has ended
		}
		logins[l.project] = append(logins[l.project], l.id)
		if here := moment(l.seen); here.After(seen) {
			seen = here
		}
	}
	held = make(map[string]string, len(logins))
	for project, l := range logins {
		held[project] = l.String()
	}
	return held, seen, nil
}

// MoveBrowser returns logins, by project, as [idp.BrowserLogins] are written, to a browser, and
// takes all others from the one that it was before; either may be "".
func (s *Logins) MoveBrowser(ctx context.Context, from, to string, held map[string]string) error {
	return s.change(ctx, audit.None("which browser holds a login; its beginning and end have events"),
		func(t tx) error {
			if from != "" {
				if err := t.Later(ctx, `UPDATE login_sessions SET browser = '' WHERE browser = $1 AND browser <> ''`, from); err != nil {
					return fmt.Errorf("emptying browser: %w", err)
				}
			}
			if to == "" {
				return nil
			}
			for _, project := range slices.Sorted(maps.Keys(held)) {
				for place, id := range idp.ParseBrowserLogins(held[project]) {
					if id == "" {
						continue
					}
					err := t.Later(ctx, `UPDATE login_sessions SET browser = $1, seen = $2, place = $3 WHERE id = $4 AND project_id = $5`,
						to, micros(s.now()), place, id, project)
					if err != nil {
						return fmt.Errorf("filling browser: %w", err)
					}
				}
			}
			return nil
		})
}

// SeeBrowser notes that a browser is here now.
func (s *Logins) SeeBrowser(ctx context.Context, browser string) error {
	return s.once(ctx, audit.None("a use"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE login_sessions SET seen = $2 WHERE browser = $1 AND browser <> ''`,
			browser, micros(s.now()))
		if err != nil {
			return fmt.Errorf("seeing browser: %w", err)
		}
		return nil
	})
}
