package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

func TestDeclared(t *testing.T) { EachDatabase(t, testDeclared) }

// testDeclared shows that each mark belongs to a project, is unique, and is deleted with its
// project.
func testDeclared(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	projects, err := s.ListProjects(ctx, "", page.Query{Size: 1})
	if err != nil || len(projects.Items) == 0 {
		t.Fatalf("ListProjects = %v, %v, want one", projects, err)
	}

	project := projects.Items[0].ID
	wantDeclared := func(want ...string) {
		t.Helper()
		got, err := s.ListDeclared(ctx, project)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ListDeclared = %q, %v, want %q", got, err, want)
		}
	}
	for _, id := range []string{"b", "a", "a", "c"} {
		if err := s.MarkDeclared(ctx, project, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.MarkDeclared(ctx, "none", "d"); !errors.Is(err, problem.NotFound) {
		t.Errorf("MarkDeclared of an unknown project = %v, want not found", err)
	}

	for range 2 {
		if err := s.UnmarkDeclared(ctx, "c"); err != nil {
			t.Fatal(err)
		}
	}
	wantDeclared("a", "b")

	if err := s.DeleteProject(ctx, revocation.Revocation{Kind: revocation.Project, ID: project}); err != nil {
		t.Fatal(err)
	}
	wantDeclared()
}
