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
		{name: "all", takes: []string{"ID"}, args: []string{"1"}},
		{name: "without the optional argument", takes: []string{"ID", "[FILE]"}, args: []string{"1"}},
		{name: "the last argument several times", takes: []string{"FILE…"}, args: []string{"a", "b", "c"}},
		{
			name:  "too few",
			takes: []string{"ID"},
			want:  "delete needs ID; see `delete --help`",
		},
		{
			name:  "too many",
			takes: []string{"ID"},
			args:  []string{"1", "2"},
			want:  "delete takes no argument \"2\"; see `delete --help`",
		},
		{
			name:  "an empty argument",
			takes: []string{"ID", "[FILE]"},
			args:  []string{"1", ""},
			want:  "delete needs FILE, but it is empty",
		},
		{
			name:  "one of several arguments is empty",
			takes: []string{"FILE…"},
			args:  []string{"a", ""},
			want:  "delete needs FILE…, but it is empty",
		},
		{
			name: "an empty argument for a command without arguments",
			args: []string{""},
			want: "delete takes no argument \"\"; see `delete --help`",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			if err := cli.Arguments(tt.takes...)(&cobra.Command{Use: "delete"}, tt.args); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("the error for the arguments %q = %q, want %q", tt.args, got, tt.want)
			}
		})
	}
}
