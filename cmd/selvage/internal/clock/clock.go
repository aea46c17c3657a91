// Package clock compares the clock of this machine with that of its database.
package clock

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// These limits bound the difference between the clocks of a node and its database. Nodes whose
// clocks differ more consider each other's tokens expired or not yet issued.
const (
	Tolerated = time.Minute
	refused   = 5 * time.Minute // a server with a larger difference does not start
)

// A Source returns the time of a database's clock.
type Source func(ctx context.Context) (time.Time, error)

// Ahead returns how far this machine's clock is ahead of the database's.
func (c Source) Ahead(ctx context.Context) (time.Duration, error) {
	before := time.Now()
	theirs, err := c(ctx)
	if err != nil {
		return 0, err
	}
	// Assume that the database read its clock halfway through the request.
	return before.Add(time.Since(before) / 2).Sub(theirs), nil
}

// Check returns an error if this machine's clock differs too much from the database's, and logs a
// warning if the difference is smaller, but still more than Tolerated.
func (c Source) Check(ctx context.Context, log *slog.Logger) error {
	ahead, err := c.Ahead(ctx)
	if err != nil {
		return err
	}
	switch {
	case ahead.Abs() > refused:
		return fmt.Errorf(
			"this machine's clock is %s the database's: set both by NTP, or tokens would expire too early or too late",
			Apart(ahead))
	case ahead.Abs() > Tolerated:
		log.Warn("this machine's clock is " + Apart(ahead) + " the database's; set both by NTP")
	}
	return nil
}

// CheckTolerance returns an error if the clocks differ by more than Tolerated.
func (c Source) CheckTolerance(ctx context.Context) error {
	ahead, err := c.Ahead(ctx)
	if err != nil {
		return err
	}
	if ahead.Abs() > Tolerated {
		return fmt.Errorf("this machine's clock is %s the database's", Apart(ahead))
	}
	return nil
}

// Apart returns a text such as "2s ahead of", to be followed by the name of the other clock.
func Apart(ahead time.Duration) string {
	if ahead < 0 {
		return ahead.Abs().Round(time.Second).String() + " behind"
	}
	return ahead.Round(time.Second).String() + " ahead of"
}
