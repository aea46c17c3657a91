package declared_test

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/declared"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzParse shows that Parse returns either a file or an error, within a bounded time.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"projects: [{name: Acme, clients: [{name: App, scopes: [openid]}]}]",
		`{"projects":[{"name":"Acme"}]}`,
		"projects: &a [*a]",
		"a: &a [" + strings.Repeat("x,", 100) + "]\n" + strings.Repeat("b: [*a,*a,*a,*a]\n", 100),
		"projects: " + strings.Repeat("[", 5_000),
		strings.Repeat("- ", 5_000),
		"---\n---\n",
		"\xff\xfe",
		"projects: [{" + strings.Repeat("lisen: 1, ", 1_000) + "}]",
	} {
		f.Add(text)
	}

	d := declared.New(declared.Config{Suggest: func(string, []string) string { return "" }})
	bound := fuzzcost.Bound{
		CPU:        20 * time.Millisecond,
		CPUPerByte: 20 * time.Microsecond,
		Heap:       4 << 20,
		PerByte:    4 << 10,
	}
	f.Fuzz(func(t *testing.T, text string) {
		bound.Check(t, len(text), func() {
			if file, err := d.Parse("acme.yaml", []byte(text)); err == nil && file == nil {
				t.Errorf("Parse(%q) returns neither a file nor an error", text)
			}
		})
	})
}
