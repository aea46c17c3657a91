package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// exampleOf returns the example of a kind in two forms: as an operator would type it into the form, and
// as values.
func exampleOf(t *testing.T, k *kinds.Kind) (url.Values, kinds.Values) {
	t.Helper()
	example, posted := make(kinds.Values), make(url.Values)
	must(t, json.Unmarshal(k.Examples[0], &example))

	for alias, name := range k.Alias {
		if raw, ok := example[alias]; ok {
			delete(example, alias)
			example[name] = raw
		}
	}

	// Remove fields that are not in the form from both results.
	for _, f := range k.Fields {
		raw, ok := example[f.Name]
		if !ok || f.ReadOnly || f.Name == "document_version" {
			delete(example, f.Name)
			continue
		}

		var text string
		var list []string
		switch {
		case json.Unmarshal(raw, &text) == nil:
			if f.Format == "date-time" {
				text = strings.TrimSuffix(text, "Z") // as browsers send times
			}
			posted.Set(f.Name, text)
		case f.Items != nil && f.Items.Enum != nil && json.Unmarshal(raw, &list) == nil:
			posted[f.Name] = list
		case f.Items != nil && f.Items.Type == "string" && !f.Items.Mixed && json.Unmarshal(raw, &list) == nil:
			posted.Set(f.Name, strings.Join(list, "\r\n")) // one per line
		case string(raw) == "false":
			if f.Default == nil || f.Nullable { // not a checkbox, which would send nothing
				text = "false"
			}
			posted.Set(f.Name, text)
		default:
			posted.Set(f.Name, string(raw))
		}
	}
	return posted, example
}

// TestResourceForms shows that each kind has a form derived from its schema. The kind's example can
// be typed into the form, and saving an unedited form changes nothing.
func TestResourceForms(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for _, k := range kinds.Builtin().All() {
		t.Run(k.Path, func(t *testing.T) { checkResourceForm(t, b, k) })
	}
}

// checkResourceForm creates the example of a kind, and then saves it unchanged.
func checkResourceForm(t *testing.T, b browser, k *kinds.Kind) {
	base := "/dashboard/projects/" + b.one.ID
	posted, want := exampleOf(t, k)
	if posted.Has("calling_handler_resource_id") { // the example names a missing resource
		posted.Del("calling_handler_resource_id")
		posted.Del("call_handler")
	}

	// The form creates the resource with these values.
	form := base + "/kinds/" + k.Path
	a := b.post(form, form, posted)
	status := http.StatusSeeOther
	if k.Type == fabric.EndpointKind {
		status = http.StatusOK // its page, with the password
	}
	if a.StatusCode != status {
		t.Fatalf("%s, want %d: %s", a, status, a.body)
	}

	found, err := b.fabric.Resources.List(t.Context(), b.one.ID, k, page.Query{Size: 10})
	must(t, err)
	created := found.Items[0]
	one := base + "/resources/" + created.ID
	if status == http.StatusSeeOther {
		a.leadsTo(t, one+"?done=resourceadded")
	}
	for name, value := range want {
		if k.Field(name).WriteOnly || !posted.Has(name) {
			continue
		}
		if got := string(created.Fields[name]); !sameJSON(t, got, string(value)) {
			t.Errorf("%s is %s, want %s", name, got, value)
		}
	}

	// The resource's page shows its id and its URL in the API.
	b.get(one).wantText(t, created.ID, "/api/fabric/resources/"+k.Path+"/"+created.ID)

	// Saving the unedited form changes nothing.
	again := url.Values{}
	for name, values := range posted {
		if f := k.Field(name); f != nil && !f.WriteOnly {
			again[name] = values
		}
	}
	b.post(one+"/edit", one+"/edit", again).leadsTo(t, one+"?done=changed")
	after, err := b.fabric.Resources.Find(t.Context(), b.one.ID, k, created.ID)
	must(t, err)
	if !reflect.DeepEqual(after, created) {
		t.Errorf("saving the unedited form changed the resource to %+v, want %+v", after, created)
	}
}

// sameJSON reports whether two documents have the same value.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	must(t, json.Unmarshal([]byte(a), &x))
	must(t, json.Unmarshal([]byte(b), &y))
	return reflect.DeepEqual(x, y)
}

// secretToken is a valid value for the secret member of a connector.
const secretToken = "8a0a6f6e-3a3a-4d2e-9a51-5f8b4d3a2c10"

// connector creates a connector named PBX through the form, and returns the path of its page.
func (b browser) connector() string {
	b.Helper()
	form := "/dashboard/projects/" + b.one.ID + "/kinds/freeswitch_connectors"
	created := b.post(form, form, url.Values{"name": {"PBX"}, "token": {secretToken}})
	return strings.TrimSuffix(created.Header.Get("Location"), "?done=resourceadded")
}

// TestResourceFaults shows that a form reports errors next to their fields, and keeps what was
// typed, except secrets.
func TestResourceFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID

	connectors := base + "/kinds/freeswitch_connectors"
	invalid := b.post(connectors, connectors, url.Values{"name": {"<b>PBX"}, "token": {"no uuid at all"}})
	invalid.wantRefused(t, `<a href="#f-token">Token must be a uuid.`, `value="&lt;b&gt;PBX"`,
		`id="f-token-fault"`, `aria-invalid="true"`)
	invalid.wantNoText(t, "no uuid at all")

	// Pages never show a stored secret.
	one := b.connector()
	for _, at := range []string{one, one + "/edit"} {
		shown := b.get(at)
		shown.wantStatus(t, http.StatusOK)
		shown.wantNoText(t, secretToken)
	}

	// Invalid JSON is reported with its line.
	agents := base + "/kinds/ai_agents"
	b.post(agents, agents, url.Values{"name": {"Bo"}, "prompt": {"{\n\"text\": oops\n}"}}).wantText(t,
		"Prompt is not valid JSON: check the quotes, commas and brackets in line 2.", "oops")

	// Plain text becomes a prompt.
	plain := b.post(agents, agents, url.Values{"name": {"Bo"}, "prompt": {" You sell\r\nbicycles. "}})
	bo := strings.TrimSuffix(plain.Header.Get("Location"), "?done=resourceadded")
	b.get(bo+"/edit").wantText(t, "&#34;text&#34;: &#34;You sell\\nbicycles.&#34;")
}

// TestResourceConflict shows that the form for a resource does not overwrite changes by others.
func TestResourceConflict(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := b.connector()
	seen := b.marks(one + "/edit")

	// Another operator changes the resource while the form is open.
	k := w.fabric.Resources.Kinds().ByPath("freeswitch_connectors")
	theirs := kinds.Values{"send_as": []byte(`"7"`)}
	_, err := w.fabric.Resources.Update(t.Context(), w.one.ID, k, path.Base(one), theirs)
	must(t, err)

	mine := url.Values{"seen": {seen}, "name": {"Mine"}, "send_as": {"8"}}
	b.post(one+"/edit", one+"/edit", mine).wantRefused(t, "changed by somebody else", `value="Mine"`)
}

// TestUntouchedTime shows that a time that the sender of a form has not edited does not conflict with a
// change by somebody else. Browsers send it without seconds that are zero.
func TestUntouchedTime(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	kind := w.fabric.Resources.Kinds().ByPath("doors")
	door, err := w.fabric.Resources.Create(t.Context(), w.one.ID, kind,
		kinds.Values{"name": []byte(`"Front"`), "opens": []byte(`"2030-01-31T15:00:00Z"`)})
	must(t, err)
	one := "/dashboard/projects/" + w.one.ID + "/resources/" + door.ID
	seen := b.marks(one + "/edit")

	theirs := kinds.Values{"opens": []byte(`"2030-02-28T09:00:00Z"`)}
	_, err = w.fabric.Resources.Update(t.Context(), w.one.ID, kind, door.ID, theirs)
	must(t, err)

	mine := url.Values{"seen": {seen}, "name": {"Back"}, "opens": {"2030-01-31T15:00"}}
	b.post(one+"/edit", one+"/edit", mine).leadsTo(t, one+"?done=changed")
	found, err := w.fabric.Resources.Find(t.Context(), w.one.ID, kind, door.ID)
	must(t, err)
	if got := string(found.Fields["opens"]); got != string(theirs["opens"]) {
		t.Errorf("the door opens at %s, want %s, as the other operator has set", got, theirs["opens"])
	}
	if found.DisplayName != "Back" {
		t.Errorf("the door is named %q, want Back", found.DisplayName)
	}
}

// TestDeleteResource shows that the name of a resource must be typed to delete it.
func TestDeleteResource(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := b.connector()
	b.post(one, one+"/delete", url.Values{"confirm": {"pbx"}}).wantRefused(t)
	b.post(one, one+"/delete", url.Values{"confirm": {"PBX"}}).
		leadsTo(t, "/dashboard/projects/"+w.one.ID+"/resources?done=resourcedeleted")
	b.get(one).wantStatus(t, http.StatusNotFound)
}

// TestCustomKind shows that a kind defined by an operator gets a form without any code written for
// it. The members of an object become a group of inputs, each with its own error.
func TestCustomKind(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	form := "/dashboard/projects/" + w.one.ID + "/kinds/doors"
	b.get(form).wantText(t, `name="lock.pin"`, `min="1"`, `max="9"`)

	tooLarge := b.post(form, form, url.Values{"name": {"Front"}, "lock.pin": {"12"}})
	tooLarge.wantText(t, `id="f-lock-pin-fault"`, `value="12"`)

	created := b.post(form, form, url.Values{"name": {"Front"}, "lock.pin": {"7"}, "tags": {"a\r\n\r\n b "}})
	if created.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s, want 303: %s", created, created.body)
	}

	kind := w.fabric.Resources.Kinds().ByPath("doors")
	doors, err := w.fabric.Resources.List(t.Context(), w.one.ID, kind, page.Query{Size: 1})
	must(t, err)
	door := doors.Items[0]
	if door.DisplayName != "Front" {
		t.Errorf("the door is named %q, want Front", door.DisplayName)
	}
	for name, want := range map[string]string{"lock": `{"pin":7}`, "tags": `["a","b"]`} {
		if got := string(door.Fields[name]); got != want {
			t.Errorf("the %s of the door is %s, want %s", name, got, want)
		}
	}
}

// TestNullGroup shows that the members of an object can be filled in if the object is null.
func TestNullGroup(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	kind := w.fabric.Resources.Kinds().ByPath("doors")
	door, err := w.fabric.Resources.Create(t.Context(), w.one.ID, kind,
		kinds.Values{"name": []byte(`"Front"`), "bell": []byte("null")})
	must(t, err)

	one := "/dashboard/projects/" + w.one.ID + "/resources/" + door.ID
	b.post(one+"/edit", one+"/edit", url.Values{"name": {"Front"}, "bell.tune": {"gong"}}).
		leadsTo(t, one+"?done=changed")
	found, err := w.fabric.Resources.Find(t.Context(), w.one.ID, kind, door.ID)
	must(t, err)
	if got := string(found.Fields["bell"]); got != `{"tune":"gong"}` {
		t.Errorf("the bell of the door is %s, want the tune gong", got)
	}
}

// TestDeploy shows that a resource with versions can be deployed from its page: either the document
// that the page shows, or an earlier version. Viewers cannot deploy. Resources without versions
// cannot be deployed.
func TestDeploy(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("vic@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})

	flows := w.fabric.Resources.Kinds().ByPath("call_flows")
	flow, err := w.fabric.Resources.Create(t.Context(), w.one.ID, flows,
		kinds.Values{"title": []byte(`"<b>Hours"`)})
	must(t, err)
	at := "/dashboard/projects/" + w.one.ID + "/resources/" + flow.ID
	b.get(at).wantText(t, "No version has been deployed")

	// Only the document that the page shows can be deployed.
	document := b.get(at).find(t, `name="document" value="([0-9]+)"`)
	b.post(at, at+"/deploy", url.Values{"document": {document}}).leadsTo(t, at+"?done=deployed")
	b.post(at, at+"/deploy", url.Values{"document": {"99"}}).wantRefused(t, "must be "+document)

	// An earlier version can be deployed again.
	version := b.get(at).find(t, `name="version" value="([^"]+)"`)
	b.post(at, at+"/deploy", url.Values{"version": {version}}).leadsTo(t, at+"?done=deployed")
	unknown := url.Values{"version": {"0199a000-0000-7000-8000-0000000000aa"}}
	b.post(at, at+"/deploy", unknown).wantRefused(t)

	versions, err := w.fabric.Resources.ListVersions(t.Context(), w.one.ID, flows, flow.ID, firstPage)
	must(t, err)
	if n := len(versions.Items); n != 2 {
		t.Errorf("there are %d versions, want 2", n)
	}

	// Viewers and kinds without versions cannot deploy.
	shown := viewer.get(at)
	shown.wantText(t, "Versions")
	shown.wantNoText(t, `id="deploy"`, "Deploy again")
	room := "/dashboard/projects/" + w.one.ID + "/resources/" + w.room("room").ID
	b.post(room, room+"/deploy", url.Values{"document": {"1"}}).wantStatus(t, http.StatusNotFound)
}
