package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A span is a flag's value: for how long something is good, from least to most.
type span struct{ length, least, most time.Duration }

var _ pflag.Value = (*span)(nil)

const day = 24 * time.Hour

// spanOf gives what a flag says that is a span.
func spanOf(cmd *cobra.Command, flag string) time.Duration {
	return cmd.Flags().Lookup(flag).Value.(*span).length
}

// Set reads a span, in days too.
func (s *span) Set(text string) error {
	length, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		length = time.Duration(max(-1, min(n, 1+int(s.most/day)))) * day
	}
	if err != nil || length < s.least || length > s.most {
		bounds := "up to " + inDays(s.most)
		if s.least > 0 {
			bounds = "from " + inDays(s.least) + " to " + inDays(s.most)
		}
		return fmt.Errorf("needs a time %s, such as 12h or 7d", bounds)
	}
	s.length = length
	return nil
}

func (s *span) String() string { return inDays(s.length) }

// Type is the kind of value, for the help.
func (s *span) Type() string { return "time" }

// inDays writes a time as one would: 30d, 1h, where Go says 720h0m0s.
func inDays(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return strconv.Itoa(int(d/day)) + "d"
	}
	text := d.String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}
