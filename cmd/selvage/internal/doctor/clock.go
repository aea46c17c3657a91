package doctor

import (
	"context"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/clock"
	"github.com/selvage/selvage/store"
)

const setClocks = "have NTP set the clocks of all machines (apt install chrony; `chronyc tracking` or `timedatectl` tells how it goes)"

// clocks checks that NTP is active, and compares this machine's clock with the
// database's and with the newest row.
func (e *Examination) clocks(ctx context.Context) []Finding {
	var all []Finding
	if set, known := clockIsSet(); known && !set {
		all = append(all, warnedf(setClocks, "nothing keeps this machine's clock right").of("NTP"))
	} else if known {
		all = append(all, finef("NTP keeps this machine's clock right").of("NTP"))
	}
	return append(all, e.overRows(ctx, func(s *store.Store) []Finding { return e.clocksOfRows(ctx, s) })...)
}

// clocksOfRows compares the clock with the database's, if that is on another machine, and
// with the newest row.
func (e *Examination) clocksOfRows(ctx context.Context, s *store.Store) (all []Finding) {
	if e.Config.Database.Shared() {
		all = append(all, besideTheirs(ctx, "the database's", clock.Source(s.Clock)).of("database"))
	}

	newest, err := s.Newest(ctx)
	switch ahead := time.Until(newest); {
	case err != nil:
		all = append(all, skippedf("%s", plainly(err)).of("rows"))
	case newest.IsZero():
		all = append(all, skippedf("there are none").of("rows"))
	case ahead > clock.Tolerated:
		all = append(all, brokenf(setClocks,
			"the newest was made at %s, which is %s ahead of now: this clock was set back, or was ahead",
			stamp(newest), ahead.Round(time.Second)).of("rows"))
	default:
		all = append(all, finef("the newest was made at %s", stamp(newest)).of("rows"))
	}

	return all
}

// besideTheirs compares this machine's clock with another machine's.
func besideTheirs(ctx context.Context, whose string, c clock.Source) Finding {
	ahead, err := c.Ahead(ctx)
	switch {
	case err != nil:
		return skippedf("%s", plainly(err))
	case ahead.Abs() > clock.Tolerated:
		return brokenf(setClocks, "this machine's is %s %s", clock.Apart(ahead), whose)
	case ahead.Abs() > time.Second:
		return finef("this machine's is %s %s", clock.Apart(ahead), whose)
	}
	return finef("this machine's is %s, to the second", whose)
}
