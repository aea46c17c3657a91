package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Time is a time in JSON: ISO 8601 in UTC. With omitempty, a nil Time is omitted.
type Time = *time.Time

// UTC returns t for JSON, in whole seconds, or nil for the zero time.
func UTC(t time.Time) Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

const timeLayout = "2006-01-02 15:04"

// FormatTime formats t in local time for people. For the zero time, it returns "".
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(timeLayout)
}

// isTime reports whether s was formatted by FormatTime.
func isTime(s string) bool {
	_, err := time.Parse(timeLayout, s)
	return err == nil
}

// YesNo formats a bool.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// YesOnly formats a bool that is usually false: false is "".
func YesOnly(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// Count formats a number. For 0, it returns "".
func Count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Plural formats a number of things: "1 file", "2 files".
func Plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Lines joins items by newlines.
func Lines(items []string) string { return strings.Join(items, "\n") }

// Join joins items by spaces.
func Join[T ~string](items []T) string { return strings.Join(Strings(items), " ") }

// Strings converts items to strings.
func Strings[T ~string](items []T) []string {
	texts := make([]string, len(items))
	for i, it := range items {
		texts[i] = string(it)
	}
	return texts
}

// ShownOnce is printed next to a secret, since only its hash is stored.
const ShownOnce = "shown once; only its hash is kept"

// Once formats a secret that cannot be shown again. For "", it returns "".
func Once(secret string) string {
	if secret == "" {
		return ""
	}
	return secret + "\n" + ShownOnce
}

// Pad appends spaces to s up to a width.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
