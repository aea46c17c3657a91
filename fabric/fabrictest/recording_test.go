package fabrictest

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// newRecorded creates a subscriber with the given RecordCalls, and returns its id.
func newRecorded(t *testing.T, f *fabric.Fabric, projectID, email string, set fabric.RecordCalls) string {
	t.Helper()
	in := fabric.SubscriberInput{Email: &email, RecordCalls: &set}
	s, err := f.Subscribers.Create(t.Context(), projectID, in)
	if err != nil {
		t.Fatal(err)
	}
	if s.RecordCalls != set {
		t.Fatalf("a subscriber created with RecordCalls %q has %q", set, s.RecordCalls)
	}
	return s.ID
}

func TestRecordsCall(t *testing.T) {
	f, p := projectOf(t)
	other, err := f.Projects.Create(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	inherit := newRecorded(t, f, p.ID, "inherit@example.com", fabric.RecordInherit)
	off := newRecorded(t, f, p.ID, "off@example.com", fabric.RecordOff)
	on := newRecorded(t, f, p.ID, "on@example.com", fabric.RecordOn)
	foreign := newRecorded(t, f, other.ID, "on@example.com", fabric.RecordOn)
	unknown := uuid.NewString()

	tests := []struct {
		name        string
		subscribers []string
		wantIfOff   bool // whether to record if the project's setting is off
		wantIfOn    bool // whether to record if the project's setting is on
	}{
		{"nobody", nil, false, true},
		{"inherit", []string{inherit}, false, true},
		{"off", []string{off}, false, false},
		{"on", []string{on}, true, true},
		{"off and off", []string{off, off}, false, false},
		{"off and on", []string{off, on}, true, true},
		{"on and off", []string{on, off}, true, true},
		{"inherit and off", []string{inherit, off}, false, true},
		{"inherit and on", []string{inherit, on}, true, true},
		{"an empty id", []string{""}, false, true},
		{"off and an empty id", []string{off, ""}, false, true},
		{"on and an empty id", []string{on, ""}, true, true},
		{"unknown", []string{unknown}, false, true},
		{"off and unknown", []string{off, unknown}, false, true},
		{"of another project", []string{foreign}, false, true},
	}
	setProject := func(set fabric.RecordCalls) {
		t.Helper()
		if _, err := f.Projects.Update(t.Context(), p.ID, fabric.ProjectChange{RecordCalls: &set}); err != nil {
			t.Fatal(err)
		}
	}

	setProject(fabric.RecordOff)
	for _, tt := range tests {
		got, err := f.RecordsCall(t.Context(), p.ID, tt.subscribers...)
		if err != nil || got != tt.wantIfOff {
			t.Errorf("off in the project, %s: RecordsCall = %v, %v, want %v", tt.name, got, err, tt.wantIfOff)
		}
	}
	setProject(fabric.RecordOn)
	for _, tt := range tests {
		got, err := f.RecordsCall(t.Context(), p.ID, tt.subscribers...)
		if err != nil || got != tt.wantIfOn {
			t.Errorf("on in the project, %s: RecordsCall = %v, %v, want %v", tt.name, got, err, tt.wantIfOn)
		}
	}

	for _, id := range []string{"", unknown} {
		got, err := f.RecordsCall(t.Context(), id, on)
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("RecordsCall in the project %q: got %v, want NotFound", id, err)
		}
		if got {
			t.Errorf("RecordsCall in the project %q = true, want false", id)
		}
	}
}

// TestRecordCallsDefaults shows that calls are not recorded by default.
func TestRecordCallsDefaults(t *testing.T) {
	f, p := projectOf(t)
	found, err := f.Projects.Find(t.Context(), p.ID)
	if err != nil || found.RecordCalls != fabric.RecordOff {
		t.Errorf("a new project has %q, %v, want off", found.RecordCalls, err)
	}

	email := "ada@example.com"
	s, err := f.Subscribers.Create(t.Context(), p.ID, fabric.SubscriberInput{Email: &email})
	if err != nil || s.RecordCalls != fabric.RecordInherit {
		t.Errorf("a new subscriber has %q, %v, want inherit", s.RecordCalls, err)
	}
}

func TestRecordCallsCheck(t *testing.T) {
	email := "ada@example.com"
	for _, set := range []fabric.RecordCalls{"", "On", "yes", "inherit "} {
		if err := (fabric.ProjectChange{RecordCalls: &set}).Check(); !errors.Is(err, problem.Invalid) {
			t.Errorf("Check of a project with %q = %v, want Invalid", set, err)
		}
		err := fabric.SubscriberInput{Email: &email, RecordCalls: &set}.Check(true)
		if !errors.Is(err, problem.Invalid) {
			t.Errorf("Check of a subscriber with %q = %v, want Invalid", set, err)
		}
	}
	inherit := fabric.RecordInherit
	if err := (fabric.ProjectChange{RecordCalls: &inherit}).Check(); !errors.Is(err, problem.Invalid) {
		t.Errorf("Check of a project with inherit = %v, want Invalid", err)
	}
}

// TestRecordCallsRights shows that only credentials with the scope Management can change whose calls
// are recorded. A key that has been revoked cannot.
func TestRecordCallsRights(t *testing.T) {
	f, p := projectOf(t)
	id := newRecorded(t, f, p.ID, "ada@example.com", fabric.RecordOff)
	newKey := func(scope fabric.Scope) (fabric.APIKey, *fabric.Rights) {
		t.Helper()
		in := fabric.APIKeyInput{Scopes: []fabric.Scope{scope}}
		key, secret, err := f.APIKeys.Create(t.Context(), p.ID, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return key, key.Rights(secret)
	}

	_, voice := newKey(fabric.Voice)
	manager, management := newKey(fabric.Management)
	update := func(set fabric.RecordCalls, by *fabric.Rights) error {
		in := fabric.SubscriberInput{RecordCalls: &set, Rights: by}
		_, err := f.Subscribers.Update(t.Context(), p.ID, id, in)
		return err
	}
	create := func(email string, set fabric.RecordCalls, by *fabric.Rights) error {
		in := fabric.SubscriberInput{Email: &email, RecordCalls: &set, Rights: by}
		_, err := f.Subscribers.Create(t.Context(), p.ID, in)
		return err
	}

	for _, set := range []fabric.RecordCalls{fabric.RecordInherit, fabric.RecordOn} {
		if err := update(set, voice); !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Update to %s with Voice = %v, want Unauthenticated", set, err)
		}
	}

	for _, set := range []fabric.RecordCalls{fabric.RecordOff, fabric.RecordOn} {
		if err := create("bob@example.com", set, voice); !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Create with %s and Voice = %v, want Unauthenticated", set, err)
		}
	}

	if err := update(fabric.RecordOff, voice); err != nil {
		t.Errorf("Update that changes nothing = %v, want no error", err)
	}
	if err := create("bob@example.com", fabric.RecordInherit, voice); err != nil {
		t.Errorf("Create with inherit = %v, want no error", err)
	}

	if err := update(fabric.RecordOn, management); err != nil {
		t.Errorf("Update with Management = %v, want no error", err)
	}
	if err := create("eve@example.com", fabric.RecordOn, management); err != nil {
		t.Errorf("Create with Management = %v, want no error", err)
	}

	if err := f.APIKeys.Revoke(t.Context(), p.ID, manager.ID); err != nil {
		t.Fatal(err)
	}
	if err := update(fabric.RecordOff, management); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("Update with a revoked key = %v, want Unauthenticated", err)
	}

	s, err := f.Subscribers.Find(t.Context(), p.ID, id)
	if err != nil || s.RecordCalls != fabric.RecordOn {
		t.Errorf("after the refused changes, the setting is %q, %v, want on", s.RecordCalls, err)
	}
}
