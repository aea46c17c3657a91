package declared_test

import (
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/declared"
)

// TestParseSecondDocument shows that nothing may follow the first document of a file, valid or not.
func TestParseSecondDocument(t *testing.T) {
	d := declared.New(declared.Config{Suggest: func(string, []string) string { return "" }})
	tests := []struct {
		name, rest string
		want       string // part of the error; "" for none
	}{
		{"nothing", "", ""},
		{"end of document", "...\n# comment\n", ""},
		{"document", "---\nprojects: []\n", "a second document begins"},
		{"malformed document", "---\nprojects: [\n", "acme.yaml:"},
		{"malformed text", "...\n}\n", "acme.yaml:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := d.Parse("acme.yaml", []byte("projects: []\n"+tt.rest))
			if tt.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse = %v, want an error with %q", err, tt.want)
			}
		})
	}
}
