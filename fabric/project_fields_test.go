package fabric

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProjectFields shows that ProjectFields contains every setting: the change that sets all settings of
// a project has no field that is nil.
func TestProjectFields(t *testing.T) {
	change := reflect.ValueOf(Project{}.settings())
	for i := range change.NumField() {
		name := change.Type().Field(i).Name
		if name != "Logos" && change.Field(i).IsNil() {
			t.Errorf("ProjectFields does not contain %s", name)
		}
	}
}

func TestChangeTo(t *testing.T) {
	old := Project{Name: "Acme", RecordRate: 2500, OutboundPrefixes: "+49"}
	changed := old
	changed.RequireFactor = true
	changed.OutboundPrefixes = "+49 +43"

	on, prefixes := true, Prefixes("+49 +43")
	want := ProjectChange{RequireFactor: &on, OutboundPrefixes: &prefixes}
	if diff := cmp.Diff(want, old.ChangeTo(changed)); diff != "" {
		t.Errorf("ChangeTo (-want +got):\n%s", diff)
	}
}

// TestPrefixesJSON shows that prefixes are a list in JSON, and that the text of earlier exports is
// still understood.
func TestPrefixesJSON(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Prefixes
		out  string
	}{
		{`["+49","+43"]`, "+49 +43", `["+49","+43"]`},
		{`"+49 +43"`, "+49 +43", `["+49","+43"]`},
		{`""`, "", `[]`},
		{`[]`, "", `[]`},
	} {
		var p Prefixes
		if err := json.Unmarshal([]byte(tt.in), &p); err != nil {
			t.Errorf("reading %s: %v", tt.in, err)
		}
		if p != tt.want {
			t.Errorf("reading %s returned %q, want %q", tt.in, p, tt.want)
		}
		if out, err := json.Marshal(p); err != nil || string(out) != tt.out {
			t.Errorf("writing %q returned %s, %v, want %s", p, out, err, tt.out)
		}
	}
	if err := json.Unmarshal([]byte(`49`), new(Prefixes)); err == nil {
		t.Error("a number was accepted as prefixes")
	}
}
