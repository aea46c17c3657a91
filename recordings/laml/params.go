package laml

import (
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// parseSpan parses a filter by time. The parameter name> is an inclusive lower bound, and name< an
// exclusive upper bound. The parameter name, without a sign, selects one day or one second.
func parseSpan(values url.Values, name string) (from, before time.Time, err error) {
	from, err = parseOptionalDate(values, name+">")
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	before, err = parseOptionalDate(values, name+"<")
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	if values.Get(name) == "" {
		return from, before, nil
	}

	start, err := parseOptionalDate(values, name)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	if from.Before(start) {
		from = start
	}
	end := start.Add(span(start))
	if before.IsZero() || before.After(end) {
		before = end
	}
	return from, before, nil
}

// parseOptionalDate parses a date in a query. Without the parameter, it returns the zero time.
func parseOptionalDate(values url.Values, param string) (time.Time, error) {
	text := values.Get(param)
	if text == "" {
		return time.Time{}, nil
	}
	parsed, ok := parseDate(text)
	if !ok {
		return time.Time{}, badDate(param)
	}
	return parsed, nil
}

// span returns the length of the period that a time stands for. For midnight, it is a day, because
// clients write days as midnight. For other times, it is a second.
func span(at time.Time) time.Duration {
	if at.Equal(at.Truncate(24 * time.Hour)) {
		return 24 * time.Hour
	}
	return time.Second
}

// parseDate parses a date in the forms of clients and documents: a day, ISO 8601 or RFC 2822.
func parseDate(text string) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	t, err := mail.ParseDate(withNumericZone(text))
	if err != nil {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// namedZones maps the names of zones to their offsets (RFC 2822, section 4.3).
var namedZones = map[string]string{
	"EDT": "-0400",
	"EST": "-0500",
	"CDT": "-0500",
	"CST": "-0600",
	"MDT": "-0600",
	"MST": "-0700",
	"PDT": "-0700",
	"PST": "-0800",
}

// withNumericZone replaces the name of a zone at the end of a date with its offset. Unknown names count
// as UTC, as section 4.3 recommends. Package time knows only the names of this machine's own zone.
func withNumericZone(date string) string {
	date = strings.TrimSpace(date)
	zone := date[strings.LastIndexByte(date, ' ')+1:]
	if zone == "" || strings.Trim(zone, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		return date
	}
	offset, known := namedZones[strings.ToUpper(zone)]
	if !known {
		offset = "+0000"
	}
	return strings.TrimSuffix(date, zone) + offset
}

// badDate returns the error for a parameter that is not a date.
func badDate(param string) error {
	return problem.BadParam(param,
		"%s must be a date like 2026-11-20, 2026-11-20T10:11:12Z or Fri, 20 Nov 2026 10:11:12 +0000", param)
}

// maxSeconds is the maximum duration in a query: one year.
const maxSeconds = 366 * 24 * 60 * 60

// parseSeconds parses a number of seconds in a query. Without the parameter, it returns 0.
func parseSeconds(values url.Values, param string) (time.Duration, error) {
	text := values.Get(param)
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds <= maxSeconds) { // also rejects NaN
		return 0, problem.BadParam(param, "%s must be a number of seconds", param)
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond), nil
}

// parseBool parses a parameter whose value is true or false.
func parseBool(query url.Values, name string, into *bool) error {
	if len(query[name]) > 1 {
		return problem.BadParam(name, "%s is repeated", name)
	}
	switch strings.ToLower(query.Get(name)) {
	case "true":
		*into = true
	case "", "false":
	default:
		return problem.BadParam(name, "%s must be true or false", name)
	}
	return nil
}

// parseOneOrTwo parses a parameter whose value is 1 or 2.
func parseOneOrTwo(query url.Values, name string, into *int) error {
	if len(query[name]) > 1 {
		return problem.BadParam(name, "%s is repeated", name)
	}
	switch query.Get(name) {
	case "":
	case "1":
		*into = 1
	case "2":
		*into = 2
	default:
		return problem.BadParam(name, "%s must be 1 or 2", name)
	}
	return nil
}

// single reads fields that must not be repeated.
func single(fields url.Values, into map[string]*string) error {
	for name, field := range into {
		values := fields[name]
		if len(values) > 1 {
			return problem.BadParam(name, "%s is repeated", name)
		}
		if len(values) == 1 {
			*field = values[0]
		}
	}
	return nil
}
