package kinds

import (
	"slices"
	"strings"
)

// Label returns the name of a member in words. Pages use it as the label unless the kind has
// another label.
func Label(name string) string {
	parts := strings.Split(name, "_")
	for i, w := range parts {
		if up := strings.ToUpper(w); slices.Contains([]string{"URL", "ID", "SIP", "SMS", "URI", "FPS", "AI"}, up) {
			parts[i] = up
		}
	}
	text := strings.Join(parts, " ")
	return strings.ToUpper(text[:1]) + text[1:]
}
