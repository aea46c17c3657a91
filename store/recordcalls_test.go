package store_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestFindRecordCalls shows that the settings of a project and its subscribers are written and read
// together, without the settings of another project.
func TestFindRecordCalls(t *testing.T) { store.EachDatabase(t, testFindRecordCalls) }

func testFindRecordCalls(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	foreign := newProject(t, s)
	create := func(p fabric.Project, name string, set fabric.RecordCalls) string {
		sub, a := subscriber(p, name+"@example.com", "", name)
		sub.RecordCalls = set
		if err := s.CreateSubscriber(t.Context(), sub, a); err != nil {
			t.Fatal(err)
		}
		return sub.ID
	}
	ada := create(p, "ada", fabric.RecordInherit)
	bob := create(p, "bob", fabric.RecordOff)
	eve := create(foreign, "eve", fabric.RecordOn)

	on := fabric.RecordOn
	now := time.Now()
	change := fabric.ProjectChange{RecordCalls: &on}
	project, err := s.UpdateProject(t.Context(), p.ID, change, now)
	if err != nil || project.RecordCalls != on {
		t.Errorf("UpdateProject = %q, %v, want %q", project.RecordCalls, err, on)
	}

	update := func(id string, change fabric.SubscriberChange) fabric.RecordCalls {
		t.Helper()
		sub, err := s.UpdateSubscriber(t.Context(), p.ID, id, change, now, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sub.RecordCalls
	}
	if got := update(ada, fabric.SubscriberChange{RecordCalls: &on}); got != on {
		t.Errorf("UpdateSubscriber = %q, want %q", got, on)
	}
	name := "Bob"
	anotherField := fabric.SubscriberChange{Profile: fabric.Profile{FirstName: &name}}
	if got := update(bob, anotherField); got != fabric.RecordOff {
		t.Errorf("UpdateSubscriber with a new name = %q, want %q", got, fabric.RecordOff)
	}

	ofProject, ofSubscribers, err := s.FindRecordCalls(t.Context(), p.ID, []string{ada, bob, bob, eve, newID()})
	if err != nil {
		t.Fatal(err)
	}
	if ofProject != on {
		t.Errorf("FindRecordCalls returns %q for the project, want %q", ofProject, on)
	}
	want := map[string]fabric.RecordCalls{ada: fabric.RecordOn, bob: fabric.RecordOff}
	if !maps.Equal(ofSubscribers, want) {
		t.Errorf("FindRecordCalls returns %v for subscribers, want %v", ofSubscribers, want)
	}

	ofProject, ofSubscribers, err = s.FindRecordCalls(t.Context(), p.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ofProject != on {
		t.Errorf("FindRecordCalls without subscribers returns %q for the project, want %q", ofProject, on)
	}
	if len(ofSubscribers) > 0 {
		t.Errorf("FindRecordCalls without subscribers returns %v for subscribers, want none", ofSubscribers)
	}
	if _, _, err := s.FindRecordCalls(t.Context(), newID(), []string{ada}); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindRecordCalls of an unknown project = %v, want NotFound", err)
	}
}
