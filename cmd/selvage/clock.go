package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// How far the clocks of a node and of its database may be apart: nodes that
// differ by more take each other's tokens for expired or not yet issued.
const (
	clocksApart    = time.Minute
	clocksTooApart = 5 * time.Minute // with which no server starts
)

// A clock gives the time that a database has.
type clock func(ctx context.Context) (time.Time, error)

// ahead tells how far this machine's clock is ahead of the database's.
func (c clock) ahead(ctx context.Context) (time.Duration, error) {
	before := time.Now()
	theirs, err := c(ctx)
	if err != nil {
		return 0, err
	}
	return before.Add(time.Since(before) / 2).Sub(theirs), nil
}

// check refuses a machine whose clock is far from the database's, and warns of one
// that is off.
func (c clock) check(ctx context.Context, log *slog.Logger) error {
	ahead, err := c.ahead(ctx)
	switch {
	case err != nil:
		return err
	case ahead.Abs() > clocksTooApart:
		return fmt.Errorf("the clock of this machine is %s the database's: set both by NTP, or tokens would live too long or not at all", apart(ahead))
	case ahead.Abs() > clocksApart:
		log.Warn("the clock of this machine is " + apart(ahead) + " the database's; set both by NTP")
	}
	return nil
}

// inTime reports that the clocks are apart.
func (c clock) inTime(ctx context.Context) error {
	ahead, err := c.ahead(ctx)
	if err == nil && ahead.Abs() > clocksApart {
		err = fmt.Errorf("this machine's is %s the database's", apart(ahead))
	}
	return err
}

func apart(ahead time.Duration) string {
	if ahead < 0 {
		return ahead.Abs().Round(time.Second).String() + " behind"
	}
	return ahead.Round(time.Second).String() + " ahead of"
}
