// Package span parses and formats durations in the notation that people use, including days.
package span

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A Span is a duration between Least and Most, for use as the value of a flag.
type Span struct{ Length, Least, Most time.Duration }

var _ pflag.Value = (*Span)(nil)

// Day is a day of 24 hours.
const Day = 24 * time.Hour

// Set parses a duration, such as 90s, 36h30m or 30d.
func (s *Span) Set(text string) error {
	length, err := s.parse(text)
	if err != nil || length < s.Least || length > s.Most {
		bounds := "up to " + InDays(s.Most)
		if s.Least > 0 {
			bounds = "from " + InDays(s.Least) + " to " + InDays(s.Most)
		}
		return fmt.Errorf("needs a time %s, such as 12h or 7d", bounds)
	}
	s.Length = length
	return nil
}

// parse parses a duration. A number of days that is far out of bounds is replaced by one that is
// just out of bounds, so that it cannot overflow.
func (s *Span) parse(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.Atoi(days)
	if err != nil {
		return 0, err
	}
	tooMany := 1 + int(s.Most/Day)
	return time.Duration(max(-1, min(n, tooMany))) * Day, nil
}

func (s *Span) String() string { return InDays(s.Length) }

// Type returns the name that the help of a command shows for this kind of value.
func (s *Span) Type() string { return "time" }

// InDays formats a duration briefly, such as 30d or 1h. Go would write 720h0m0s.
func InDays(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%Day == 0:
		return strconv.Itoa(int(d/Day)) + "d"
	}
	text := d.String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}
