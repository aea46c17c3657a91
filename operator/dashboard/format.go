package dashboard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/words"
)

// humanize returns a code such as "in-progress" as people write it: "In progress".
func humanize(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "-", " ")
}

// formatLength formats a duration as 0:07 or 1:02:03.
func formatLength(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// formatSize formats n bytes with a unit, or returns "" if n is unknown.
func formatSize(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%d kB", n/1000)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// csvTime formats a time for a CSV file, or returns "" for the zero time.
func csvTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// thousands formats a number with a comma between groups of three digits.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// inSentence returns title for use inside a sentence. In English this is lower case, except for
// abbreviations such as "SIP gateway".
func (v *visit) inSentence(title string) string {
	if w := v.words(); w != words.English() {
		return w.Text(title)
	}

	first, _, _ := strings.Cut(title, " ")
	if len(first) > 1 && strings.ToLower(first[1:]) == first[1:] {
		return strings.ToLower(title[:1]) + title[1:]
	}
	return title
}
