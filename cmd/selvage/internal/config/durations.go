package config

import (
	"fmt"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/span"
)

// parseDuration sets d to the duration in text, which must be from shortest to longest. accepted
// describes valid durations in the error.
func parseDuration[T ~int64](d *T, text []byte, shortest, longest time.Duration, accepted string) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < shortest || parsed > longest {
		return fmt.Errorf("needs a time %s", accepted)
	}
	*d = T(parsed)
	return nil
}

func (l *lifetime) UnmarshalText(text []byte) error {
	return parseDuration(l, text, time.Second, idp.MaxAccess,
		fmt.Sprintf("from 1s to %s, such as 15m or 2h", idp.MaxAccess))
}

func (l lifetime) String() string { return time.Duration(l).String() }

func (p *Period) UnmarshalText(text []byte) error {
	return parseDuration(p, text, time.Second, maxPeriod, fmt.Sprintf("from 1s to %s, such as 12h or 720h", maxPeriod))
}

func (p Period) String() string { return time.Duration(p).String() }

func (p *patience) UnmarshalText(text []byte) error {
	return parseDuration(p, text, 0, maxPatience, "up to 24h, such as 90s or 10m, or 0s for none")
}

func (p patience) String() string { return time.Duration(p).String() }

func (r *ringing) UnmarshalText(text []byte) error {
	return parseDuration(r, text, time.Second, maxRinging, "from 1s to 10m, such as 45s")
}

func (r ringing) String() string { return time.Duration(r).String() }

func (e *toneEvery) UnmarshalText(text []byte) error {
	if d, err := time.ParseDuration(string(text)); err == nil && d == 0 {
		*e = 0
		return nil
	}
	return parseDuration(e, text, minTone, maxPatience, "from 5s to 24h, such as 15s, or 0s for none")
}

func (e toneEvery) String() string { return time.Duration(e).String() }

func (r *retention) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*r = 0
		return nil
	}
	s := span.Span{Least: minRetention, Most: maxRetention}
	if err := s.Set(string(text)); err != nil {
		return fmt.Errorf("needs a time from %s to %s, such as 400d, or 0 to keep them forever",
			span.InDays(minRetention), span.InDays(maxRetention))
	}
	*r = retention(s.Length)
	return nil
}

func (r retention) String() string { return span.InDays(time.Duration(r)) }
