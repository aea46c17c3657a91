package rest_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// projectBody is the part of GET /api/project that these tests read.
type projectBody struct {
	Name        string `json:"name"`
	RecordCalls string `json:"record_calls"`
}

// TestProjectRecordCalls shows that credentials with Management can read and change whether calls
// are recorded.
func TestProjectRecordCalls(t *testing.T) {
	const path = "/api/project"
	w := newWorld(t)
	manager := w.administrator()
	if got := as[projectBody](t, w.call(manager, "GET", path, "")); got.RecordCalls != "off" {
		t.Errorf("a new project has record_calls %q, want off", got.RecordCalls)
	}

	got := as[projectBody](t, w.call(manager, "PATCH", path, `{"record_calls":"on"}`))
	if got.RecordCalls != "on" || got.Name != w.project.Name {
		t.Errorf("PATCH of record_calls: got %+v, want on and the same name", got)
	}
	got = as[projectBody](t, w.call(manager, "PATCH", path, `{"name":"renamed","record_calls":null}`))
	if got.RecordCalls != "on" || got.Name != "renamed" {
		t.Errorf("PATCH of the name: got %+v, want on and the new name", got)
	}

	for _, value := range []string{`"inherit"`, `""`, `"ON"`, `true`, `["on"]`} {
		r := w.call(manager, "PATCH", path, `{"record_calls":`+value+`}`)
		if faults := r.faults(t); faults != "record_calls:invalid_parameter" {
			t.Errorf("PATCH to %s: got %s, want an invalid record_calls", value, faults)
		}
	}

	for name, auth := range map[string]authorization{"another project": w.stranger(), "Voice": w.basic()} {
		if r := w.call(auth, "PATCH", path, `{"record_calls":"off"}`); r.status != http.StatusUnauthorized {
			t.Errorf("PATCH with the key of %s: got %d, want 401", name, r.status)
		}
	}
	if p, err := w.fabric.Projects.Find(t.Context(), w.project.ID); err != nil || p.RecordCalls != fabric.RecordOn {
		t.Errorf("at the end, record_calls is %q, %v, want on", p.RecordCalls, err)
	}
}

// TestProjectLogos shows that the logos for light and dark pages are set and removed independently,
// and that an unreadable picture changes nothing.
func TestProjectLogos(t *testing.T) {
	const path = "/api/project"
	w := newWorld(t)
	manager := w.administrator()
	type logos struct {
		Logo *string `json:"logo_url"`
		Dark *string `json:"dark_logo_url"`
	}
	dot := func(c color.Color) string {
		p := image.NewNRGBA(image.Rect(0, 0, 2, 2))
		p.Set(1, 1, c)
		var out bytes.Buffer
		if err := png.Encode(&out, p); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(out.Bytes())
	}

	set := as[logos](t, w.call(manager, "PATCH", path,
		`{"logo":"`+dot(color.Black)+`","dark_logo":"`+dot(color.White)+`"}`))
	if set.Logo == nil || set.Dark == nil || *set.Logo == *set.Dark {
		t.Fatalf("PATCH of both logos: got %+v, want two that differ", set)
	}

	for _, bad := range []string{`"%%"`, `7`, `"PHN2Zy8+"`} {
		r := w.call(manager, "PATCH", path, `{"logo":null,"dark_logo":`+bad+`}`)
		if faults := r.faults(t); faults != "dark_logo:invalid_parameter" {
			t.Errorf("PATCH of dark_logo to %s: got %s, want an invalid dark_logo", bad, faults)
		}
	}

	if got := as[logos](t, w.call(manager, "GET", path, "")); got.Logo == nil || *got.Logo != *set.Logo {
		t.Error("a dark_logo that cannot be read removes the logo")
	}
	got := as[logos](t, w.call(manager, "PATCH", path, `{"dark_logo":null}`))
	if got.Dark != nil || got.Logo == nil || *got.Logo != *set.Logo {
		t.Errorf("PATCH of dark_logo to null: got %+v, want only it removed", got)
	}
}

// TestSubscriberRecordCalls shows that a key without Management cannot change whether a
// subscriber's calls are recorded.
func TestSubscriberRecordCalls(t *testing.T) {
	w := newWorld(t)
	one := subscribers + "/" + w.create(`{"email":"ada@example.com","record_calls":"inherit"}`).ID
	for _, value := range []string{"off", "on"} {
		body := `{"email":"bob@example.com","record_calls":"` + value + `"}`
		if r := w.call(w.basic(), "POST", subscribers, body); r.status != http.StatusUnauthorized {
			t.Errorf("POST with %s and Voice: got %d, want 401", value, r.status)
		}
		if r := w.call(w.basic(), "PUT", one, `{"record_calls":"`+value+`"}`); r.status != http.StatusUnauthorized {
			t.Errorf("PUT of %s with Voice: got %d, want 401", value, r.status)
		}
	}

	manager := w.administrator()
	created := w.call(manager, "POST", subscribers, `{"email":"bob@example.com","record_calls":"off"}`)
	bob := as[envelope](t, created)
	if created.status != http.StatusCreated || bob.Subscriber["record_calls"] != "off" {
		t.Errorf("POST with off and Management: got %d %s, want 201 and off", created.status, created.text)
	}
	r := w.call(w.basic(), "PUT", subscribers+"/"+bob.ID, `{"first_name":"Bob","record_calls":"off"}`)
	if got := as[envelope](t, r); r.status != http.StatusOK || got.Subscriber["first_name"] != "Bob" {
		t.Errorf("PUT of the same record_calls with Voice: got %d %s, want 200", r.status, r.text)
	}
}
