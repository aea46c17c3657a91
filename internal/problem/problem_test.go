package problem_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
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
		if got := problem.All(tt.err); !slices.Equal(got, tt.want) {
			t.Errorf("%s: All = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestIs(t *testing.T) {
	err := fmt.Errorf("finding: %w", problem.NoSuch("thing"))
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("errors.Is(%v, NotFound) = false, want true", err)
	}
	if errors.Is(err, problem.Conflict) {
		t.Errorf("errors.Is(%v, Conflict) = true, want false", err)
	}
}
