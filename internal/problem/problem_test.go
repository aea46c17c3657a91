package problem_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/selvage/selvage/internal/problem"
)

func TestAll(t *testing.T) {
	missing, taken := problem.Missing("a"), problem.Taken("b", "b is in use")
	tests := []struct {
		name string
		err  error
		want []*problem.Error
	}{
		{"none", nil, nil},
		{"an internal error", io.EOF, nil},
		{"one", missing, []*problem.Error{missing}},
		{"wrapped", fmt.Errorf("reading: %w", missing), []*problem.Error{missing}},
		{"joined, in order", errors.Join(missing, nil, fmt.Errorf("writing: %w", taken)),
			[]*problem.Error{missing, taken}},
		{"wrapped with an internal one", fmt.Errorf("%w: %w", taken, io.EOF), []*problem.Error{taken}},
	}

	for _, tt := range tests {
		got := problem.All(tt.err)
		if len(got) != len(tt.want) {
			t.Errorf("%s: All = %v, want %v", tt.name, got, tt.want)
			continue
		}

		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: All = %v, want %v", tt.name, got, tt.want)
			}
		}
	}

	if err := fmt.Errorf("finding: %w", problem.NoSuch("thing")); !errors.Is(err, problem.NotFound) ||
		errors.Is(err, problem.Conflict) {
		t.Errorf("errors.Is(%v, …) does not match the kind", err)
	}
}
