package fabrictest

import (
	"errors"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

func TestProjectRules(t *testing.T) {
	f, p := projectOf(t)
	ctx := t.Context()
	if p.RecordRate != fabric.DefaultRecordRate {
		t.Fatalf("a new project has the rate %d, want %d", p.RecordRate, fabric.DefaultRecordRate)
	}

	for _, name := range []string{"", "  ", "a\x00b", "\xff", strings.Repeat("n", 256)} {
		if _, err := f.Projects.Create(ctx, name); !errors.Is(err, problem.Invalid) {
			t.Errorf("Create(%.10q): got %v, want Invalid", name, err)
		}
	}
	negative := int64(-1)
	_, err := f.Projects.Update(ctx, p.ID, fabric.ProjectChange{RecordRate: &negative})
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("changing the rate to -1: got %v, want Invalid", err)
	}

	rate, name := int64(5000), "uno"
	for _, change := range []fabric.ProjectChange{{RecordRate: &rate}, {Name: &name}, {}} {
		if p, err = f.Projects.Update(ctx, p.ID, change); err != nil {
			t.Fatal(err)
		}
	}
	if p.Name != "uno" {
		t.Errorf("after Update, the name is %q, want uno", p.Name)
	}
	if p.RecordRate != 5000 {
		t.Errorf("after Update, the rate is %d, want 5000", p.RecordRate)
	}

	found, err := f.Projects.Find(ctx, strings.ToUpper(p.ID))
	if err != nil || found != p {
		t.Errorf("Find = %+v, %v, want %+v", found, err, p)
	}
	listed, err := f.Projects.List(ctx, page.Query{Size: 10})
	if err != nil || len(listed.Items) != 1 {
		t.Errorf("List = %+v, %v, want one project", listed, err)
	}
}

func TestDeletedProject(t *testing.T) {
	f, p := projectOf(t)
	ctx := t.Context()
	if err := f.Projects.Delete(ctx, p.ID); err != nil {
		t.Fatal(err)
	}

	name := "uno"
	if _, err := f.Projects.Update(ctx, p.ID, fabric.ProjectChange{Name: &name}); !errors.Is(err, problem.NotFound) {
		t.Errorf("Update: got %v, want NotFound", err)
	}
	_, _, err := f.APIKeys.Create(ctx, p.ID, fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Voice}}, nil)
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("creating an API key: got %v, want NotFound", err)
	}
	if err := f.Projects.Delete(ctx, p.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("Delete again: got %v, want NotFound", err)
	}
	if _, err := f.Projects.Find(ctx, "nonsense"); !errors.Is(err, problem.NotFound) {
		t.Errorf("finding an id that no project has: got %v, want NotFound", err)
	}
}
