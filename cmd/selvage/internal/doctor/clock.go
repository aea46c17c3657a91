package doctor

import (
	"context"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/clock"
	"github.com/selvage/selvage/store"
)

const setClocks Text = "set the clocks of all machines by NTP (apt install chrony; check with `chronyc " +
	"tracking` or `timedatectl`)"

// clocks checks that NTP is active, and compares this machine's clock with the database's clock and
// with the time at which the newest row was created.
func (e *Examination) clocks(ctx context.Context) []Finding {
	var all []Finding
	synchronized, known := clockIsSet()
	switch {
	case !known:
	case synchronized:
		all = append(all, finef("this machine's clock is synchronized by NTP").of("NTP"))
	default:
		all = append(all, warnedf("this machine's clock is not synchronized").withRemedy(setClocks).of("NTP"))
	}
	return append(all, e.overRows(ctx, func(s *store.Store) []Finding { return e.clocksOfRows(ctx, s) })...)
}

// clocksOfRows compares this machine's clock with the newest row and, if the database may be on a
// different machine, with the database's clock.
func (e *Examination) clocksOfRows(ctx context.Context, s *store.Store) (all []Finding) {
	if e.Config.Database.Shared() {
		all = append(all, compareClock(ctx, s.Clock).of("database"))
	}

	newest, err := s.Newest(ctx)
	if err != nil {
		return append(all, skippedf("%s", plainly(err)).of("rows"))
	}
	ahead := time.Until(newest)
	switch {
	case newest.IsZero():
		all = append(all, skippedf("the database is empty").of("rows"))
	case ahead > clock.Tolerated:
		all = append(all, brokenf("the newest row is from %s, which is %s in the future: "+
			"this clock was set back, or was ahead when the row was written",
			stamp(newest), ahead.Round(time.Second)).
			withRemedy(setClocks).of("rows"))
	default:
		all = append(all, finef("the newest row is from %s", stamp(newest)).of("rows"))
	}
	return all
}

// compareClock compares this machine's clock with the database's clock.
func compareClock(ctx context.Context, c clock.Source) Finding {
	ahead, err := c.Ahead(ctx)
	if err != nil {
		return skippedf("%s", plainly(err))
	}
	if ahead.Abs() <= time.Second {
		return finef("this machine's clock matches the database's to the second")
	}

	f := finef("this machine's clock is %s ahead of the database's", ahead.Round(time.Second))
	if ahead < 0 {
		f = finef("this machine's clock is %s behind the database's", ahead.Abs().Round(time.Second))
	}
	if ahead.Abs() > clock.Tolerated {
		f.Status, f.Remedy = Broken, setClocks
	}
	return f
}
