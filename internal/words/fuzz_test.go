package words

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzChoose shows that choosing a language takes at most 2 ms for any Accept-Language header.
func FuzzChoose(f *testing.F) {
	for _, header := range []string{
		"de-AT,de;q=0.9,en;q=0.1", "x;q=a,de", strings.Repeat("-", 1000), strings.Repeat("a-", 500),
		strings.Repeat(",", 1000),
		strings.Repeat("de;q=0.1,", 111), "en-" + strings.Repeat("u-co-", 190), strings.Repeat("de,", 1<<14),
	} {
		f.Add(header)
	}

	bound := fuzzcost.Bound{CPU: 2 * time.Millisecond, Heap: 512 << 10}
	f.Fuzz(func(t *testing.T, header string) {
		bound.Check(t, len(header), func() {
			if Choose(header) == nil {
				t.Errorf("no language is chosen for %q", header)
			}
		})
	})
}
