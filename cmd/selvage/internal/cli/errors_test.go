package cli_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/problem"
)

// TestExplain shows that messages name flags, and the cause if something is unavailable.
func TestExplain(t *testing.T) {
	away := problem.New(problem.Unavailable, "temporarily_unavailable", "recordings cannot be stored")
	tests := []struct {
		name string
		err  error
		want string
	}{
		{
			name: "a parameter",
			err:  problem.BadParam("max_calls", "max_calls must be at least 1"),
			want: "--max-calls must be at least 1",
		},
		{
			name: "an item of a list",
			err:  problem.BadParam("codecs", "codecs.0 must be one of PCMU, PCMA"),
			want: "--codec must be one of PCMU, PCMA",
		},
		{
			name: "a message that consists of the parameter",
			err:  problem.BadParam("codecs", "codecs.0"),
			want: "--codec: codecs.0",
		},
		{
			name: "an unavailable store",
			err:  fmt.Errorf("storing blob: %w", errors.Join(away, errors.New("connection refused"))),
			want: "storing blob: recordings cannot be stored\nconnection refused",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := cli.Explain(tt.err); got != tt.want {
				t.Errorf("Explain = %q, want %q", got, tt.want)
			}
		})
	}
}
