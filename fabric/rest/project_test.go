package rest_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
)

const projectPath = "/api/project"

// projectBody is the part of GET /api/project that these tests read.
type projectBody struct {
	Name        string `json:"name"`
	RecordCalls string `json:"record_calls"`
}

// TestProjectRecordCalls shows that credentials with Management can read and change whether calls
// are recorded.
func TestProjectRecordCalls(t *testing.T) {
	w := newWorld(t)
	manager := w.administrator()
	if got := as[projectBody](t, w.call(manager, "GET", projectPath, "")); got.RecordCalls != "off" {
		t.Errorf("a new project has record_calls %q, want off", got.RecordCalls)
	}

	for _, tt := range []struct {
		body string
		want projectBody
	}{
		{`{"record_calls":"on"}`, projectBody{Name: w.project.Name, RecordCalls: "on"}},
		{`{"name":"renamed","record_calls":null}`, projectBody{Name: "renamed", RecordCalls: "on"}},
	} {
		got := as[projectBody](t, w.call(manager, "PATCH", projectPath, tt.body))
		if got != tt.want {
			t.Errorf("PATCH %s: got %+v, want %+v", tt.body, got, tt.want)
		}
	}

	for _, value := range []string{`"inherit"`, `""`, `"ON"`, `true`, `["on"]`} {
		r := w.call(manager, "PATCH", projectPath, `{"record_calls":`+value+`}`)
		if faults := r.faults(t); faults != "record_calls:invalid_parameter" {
			t.Errorf("PATCH to %s: got %s, want an invalid record_calls", value, faults)
		}
	}

	for name, auth := range map[string]authorization{
		"a key of another project": w.stranger(),
		"a key without Management": w.basic(),
	} {
		r := w.call(auth, "PATCH", projectPath, `{"record_calls":"off"}`)
		r.wantStatus(t, "PATCH with "+name, http.StatusUnauthorized)
	}
	p, err := w.fabric.Projects.Find(t.Context(), w.project.ID)
	if err != nil || p.RecordCalls != fabric.RecordOn {
		t.Errorf("at the end, record_calls is %q, %v, want on", p.RecordCalls, err)
	}
}

// A logosBody is the part of a project that shows its logos.
type logosBody struct {
	Logo *string `json:"logo_url"`
	Dark *string `json:"dark_logo_url"`
}

// picture returns a small picture with a dot, encoded for a request.
func picture(t *testing.T, dot color.Color) string {
	t.Helper()
	p := image.NewNRGBA(image.Rect(0, 0, 2, 2))
	p.Set(1, 1, dot)
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, p); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(encoded.Bytes())
}

// TestProjectLogos shows that the logos for light and dark pages are set and removed independently,
// and that an unreadable picture changes nothing.
func TestProjectLogos(t *testing.T) {
	w := newWorld(t)
	manager := w.administrator()
	both := `{"logo":"` + picture(t, color.Black) + `","dark_logo":"` + picture(t, color.White) + `"}`
	set := as[logosBody](t, w.call(manager, "PATCH", projectPath, both))
	if set.Logo == nil {
		t.Fatal("PATCH of both logos: there is no logo_url")
	}
	if set.Dark == nil {
		t.Fatal("PATCH of both logos: there is no dark_logo_url")
	}
	if *set.Logo == *set.Dark {
		t.Fatalf("PATCH of both logos: both are %s, want two that differ", *set.Logo)
	}

	for _, bad := range []string{`"%%"`, `7`, `"PHN2Zy8+"`} {
		r := w.call(manager, "PATCH", projectPath, `{"logo":null,"dark_logo":`+bad+`}`)
		if faults := r.faults(t); faults != "dark_logo:invalid_parameter" {
			t.Errorf("PATCH of dark_logo to %s: got %s, want an invalid dark_logo", bad, faults)
		}
	}

	got := as[logosBody](t, w.call(manager, "GET", projectPath, ""))
	if diff := cmp.Diff(set, got); diff != "" {
		t.Errorf("after PATCH with a dark_logo that cannot be read (-want +got):\n%s", diff)
	}
	got = as[logosBody](t, w.call(manager, "PATCH", projectPath, `{"dark_logo":null}`))
	if diff := cmp.Diff(logosBody{Logo: set.Logo}, got); diff != "" {
		t.Errorf("PATCH of dark_logo to null (-want +got):\n%s", diff)
	}
}

// TestSubscriberRecordCalls shows that a key without Management cannot change whether a
// subscriber's calls are recorded.
func TestSubscriberRecordCalls(t *testing.T) {
	w := newWorld(t)
	ada := subscribers + "/" + w.create(`{"email":"ada@example.com","record_calls":"inherit"}`).ID
	for _, value := range []string{"off", "on"} {
		setting := `"record_calls":"` + value + `"`
		r := w.call(w.basic(), "POST", subscribers, `{"email":"bob@example.com",`+setting+`}`)
		r.wantStatus(t, "POST with "+value+" and Voice", http.StatusUnauthorized)
		r = w.call(w.basic(), "PUT", ada, `{`+setting+`}`)
		r.wantStatus(t, "PUT of "+value+" with Voice", http.StatusUnauthorized)
	}

	r := w.call(w.administrator(), "POST", subscribers, `{"email":"bob@example.com","record_calls":"off"}`)
	r.wantStatus(t, "POST with off and Management", http.StatusCreated)
	bob := as[envelope](t, r)
	if got := bob.Subscriber["record_calls"]; got != "off" {
		t.Errorf("POST with off and Management: record_calls is %v, want off", got)
	}

	// The setting does not change, so Voice is enough.
	r = w.call(w.basic(), "PUT", subscribers+"/"+bob.ID, `{"first_name":"Bob","record_calls":"off"}`)
	r.wantStatus(t, "PUT of the same record_calls with Voice", http.StatusOK)
	if got := as[envelope](t, r).Subscriber["first_name"]; got != "Bob" {
		t.Errorf("PUT of the same record_calls with Voice: first_name is %v, want Bob", got)
	}
}
