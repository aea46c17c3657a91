package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

// TestProjectsNamed shows that a name is found if only the case of A to Z differs, even if the name
// has other letters.
func TestProjectsNamed(t *testing.T) { store.EachDatabase(t, testProjectsNamed) }

func testProjectsNamed(t *testing.T, c store.Config) {
	rows, p := fabricRows(t, c)
	name := "Ärzte und Ämter"
	if _, err := rows.UpdateProject(t.Context(), p.ID, fabric.ProjectChange{Name: &name}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]int{name: 1, "ÄRZTE UND ÄMTER": 1, "Ärzte": 0} {
		ids, err := rows.ProjectsNamed(t.Context(), typed)
		if err != nil || len(ids) != want {
			t.Errorf("projects named %q: %q, %v, want %d", typed, ids, err, want)
		}
	}
}

// TestProjectsFound shows that projects are found by the words of their names in upper or lower case, even
// if the words have letters other than A to Z.
func TestProjectsFound(t *testing.T) { store.EachDatabase(t, testProjectsFound) }

func testProjectsFound(t *testing.T, c store.Config) {
	rows, p := fabricRows(t, c)
	name := "Ärzte und ÄMTER"
	if _, err := rows.UpdateProject(t.Context(), p.ID, fabric.ProjectChange{Name: &name}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]int{
		"ärzte": 1, "ÄRZTE": 1, "Ärz": 1, "ämter ärzte": 1, "UND": 1, "arzte": 0, "ärzte nobody": 0, "": 1,
		p.ID: 1, strings.ToUpper(p.ID): 1,
	} {
		found, err := rows.ListProjects(t.Context(), typed, page.Query{Size: 10})
		if err != nil || len(found.Items) != want {
			t.Errorf("the search for %q finds %d projects, %v, want %d", typed, len(found.Items), err, want)
		}
	}
}

func TestDeleteProjectTakesAll(t *testing.T) { store.EachDatabase(t, testDeleteProjectTakesAll) }

func testDeleteProjectTakesAll(t *testing.T, c store.Config) {
	ctx := t.Context()
	now := time.Now()
	rows, p := fabricRows(t, c)
	sub, address := subscriber(p, "ada@example.com", "", "ada")
	if err := rows.CreateSubscriber(ctx, sub, address); err != nil {
		t.Fatal(err)
	}
	key := fabric.APIKey{
		ID:        newID(),
		ProjectID: p.ID,
		Hash:      "hash",
		Scopes:    []fabric.Scope{fabric.Voice},
		Created:   now,
	}
	if err := rows.CreateAPIKey(ctx, key, nil); err != nil {
		t.Fatal(err)
	}

	end := revocation.Revocation{
		Kind:    revocation.Project,
		ID:      p.ID,
		Until:   now,
		Expires: now.Add(time.Hour),
	}
	if err := rows.DeleteProject(ctx, end); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.FindSubscriber(ctx, p.ID, sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindSubscriber after DeleteProject = %v, want not found", err)
	}
	if _, err := rows.FindAddress(ctx, p.ID, address.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindAddress after DeleteProject = %v, want not found", err)
	}
	if _, err := rows.FindAPIKeyByHash(ctx, "hash"); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindAPIKeyByHash after DeleteProject = %v, want not found", err)
	}
	if err := rows.DeleteProject(ctx, end); !errors.Is(err, problem.NotFound) {
		t.Errorf("DeleteProject again = %v, want not found", err)
	}
}
