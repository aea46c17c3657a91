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

// FindBrowser returns the logins that a browser holds, by project and in the format of
// [idp.BrowserLogins], and when the browser was last seen. It omits logins that have ended or
// expired.
func (s *Logins) FindBrowser(
	ctx context.Context, browser string,
) (held map[string]string, seen time.Time, err error) {
	type login struct {
		project string
		id      string
		seen    time.Time
		place   int // position in the browser's logins for the project; 0 is the current login
	}
	scan := func(row scanner) (l login, err error) {
		err = row.Scan(&l.project, &l.id, scanTarget(&l.seen), &l.place)
		return l, err
	}

	logins, err := gather(ctx, s.read(), "finding browser", scan, `SELECT project_id, id, seen, place
		FROM login_sessions
		WHERE browser = $1 AND browser <> '' AND ended = 0 AND expires > $2 ORDER BY place, id`,
		browser, micros(s.now()))
	if err != nil {
		return nil, seen, err
	}
	if len(logins) == 0 {
		return nil, seen, problem.NoSuch("browser")
	}

	byProject := make(map[string]idp.BrowserLogins)
	for _, l := range logins {
		if len(byProject[l.project]) == 0 && l.place > 0 {
			byProject[l.project] = idp.BrowserLogins{""} // the browser's current login has ended
		}
		byProject[l.project] = append(byProject[l.project], l.id)
		seen = later(seen, l.seen)
	}
	held = make(map[string]string, len(byProject))
	for project, ids := range byProject {
		held[project] = ids.String()
	}
	return held, seen, nil
}

// MoveBrowser assigns logins to a browser, whose id is the parameter to. held lists these logins by
// project, in the format of [idp.BrowserLogins]. All other logins of the browser with the id in the
// parameter from then belong to no browser. Either id may be "".
func (s *Logins) MoveBrowser(ctx context.Context, from, to string, held map[string]string) error {
	e := audit.None("which browser holds a login; the beginning and end of the login are audited")
	return s.change(ctx, e, func(t tx) error {
		if from != "" {
			err := t.Later(ctx, `UPDATE login_sessions SET browser = '' WHERE browser = $1 AND browser <> ''`, from)
			if err != nil {
				return fmt.Errorf("emptying browser: %w", err)
			}
		}
		if to == "" {
			return nil
		}

		for _, project := range slices.Sorted(maps.Keys(held)) {
			if err := t.holdLogins(ctx, to, project, idp.ParseBrowserLogins(held[project]), s.now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// holdLogins assigns the logins in one project to a browser.
func (t tx) holdLogins(ctx context.Context, browser, project string, logins idp.BrowserLogins, now time.Time) error {
	for place, id := range logins {
		if id == "" {
			continue
		}
		err := t.Later(ctx, `UPDATE login_sessions SET browser = $1, seen = $2, place = $3
				WHERE id = $4 AND project_id = $5`,
			browser, micros(now), place, id, project)
		if err != nil {
			return fmt.Errorf("filling browser: %w", err)
		}
	}
	return nil
}

// SeeBrowser records that a browser has just been seen.
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
