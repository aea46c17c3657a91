package cli_test

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
)

// TestArguments shows which arguments commands accept, and the errors for others.
func TestArguments(t *testing.T) {
	tests := []struct {
		name        string
		takes, args []string
		want        string // expected error; "" for none
	}{
		{"all", []string{"ID"}, []string{"1"}, ""},
		{"an optional one", []string{"ID", "[FILE]"}, []string{"1"}, ""},
		{"several of the last", []string{"FILE…"}, []string{"a", "b", "c"}, ""},
		{"too few", []string{"ID"}, nil, "delete needs ID; see `delete --help`"},
		{"too many", []string{"ID"}, []string{"1", "2"}, "delete takes no argument \"2\"; see `delete --help`"},
		{"an empty one", []string{"ID", "[FILE]"}, []string{"1", ""}, "delete needs FILE, but it is empty"},
		{"an empty one of several", []string{"FILE…"}, []string{"a", ""}, "delete needs FILE…, but it is empty"},
		{"an empty one for a command without arguments", nil, []string{""},
			"delete takes no argument \"\"; see `delete --help`"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			if err := cli.Arguments(tt.takes...)(&cobra.Command{Use: "delete"}, tt.args); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("the arguments %q return %q, want %q", tt.args, got, tt.want)
			}
		})
	}
}
