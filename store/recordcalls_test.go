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
	created := func(p fabric.Project, name string, set fabric.RecordCalls) string {
		sub, a := subscriber(p, name+"@example.com", "", name)
		sub.RecordCalls = set
		if err := s.CreateSubscriber(t.Context(), sub, a); err != nil {
			t.Fatal(err)
		}
		return sub.ID
	}
	ada := created(p, "ada", fabric.RecordInherit)
	bob := created(p, "bob", fabric.RecordOff)
	eve := created(foreign, "eve", fabric.RecordOn)

	on, now := fabric.RecordOn, time.Now()
	if got, err := s.UpdateProject(t.Context(), p.ID, fabric.ProjectChange{RecordCalls: &on}, now); err != nil ||
		got.RecordCalls != on {
		t.Errorf("UpdateProject = %q, %v, want on", got.RecordCalls, err)
	}

	if got, err := s.UpdateSubscriber(t.Context(), p.ID, ada, fabric.SubscriberChange{RecordCalls: &on}, now,
		nil); err != nil || got.RecordCalls != on {
		t.Errorf("UpdateSubscriber = %q, %v, want on", got.RecordCalls, err)
	}

	name := "Bob" // a change of another field does not affect the setting
	if got, err := s.UpdateSubscriber(t.Context(), p.ID, bob,
		fabric.SubscriberChange{Profile: fabric.Profile{FirstName: &name}}, now, nil); err != nil ||
		got.RecordCalls != fabric.RecordOff {
		t.Errorf("UpdateSubscriber of the name = %q, %v, want off", got.RecordCalls, err)
	}

	project, got, err := s.FindRecordCalls(t.Context(), p.ID, []string{ada, bob, bob, eve, newID()})
	want := map[string]fabric.RecordCalls{ada: fabric.RecordOn, bob: fabric.RecordOff}
	if project != on || !maps.Equal(got, want) || err != nil {
		t.Errorf("FindRecordCalls = %q, %v, %v, want on, %v", project, got, err, want)
	}
	if project, got, err = s.FindRecordCalls(t.Context(), p.ID, nil); project != on || len(got) > 0 || err != nil {
		t.Errorf("FindRecordCalls without subscribers = %q, %v, %v, want on", project, got, err)
	}
	if _, _, err := s.FindRecordCalls(t.Context(), newID(), []string{ada}); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindRecordCalls of an unknown project = %v, want NotFound", err)
	}
}
