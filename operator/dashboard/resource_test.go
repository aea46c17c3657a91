package dashboard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// typed returns the example of a kind in two forms: as an operator would type it into the form, and
// as values.
func typed(t *testing.T, k *kinds.Kind) (url.Values, kinds.Values) {
	t.Helper()
	example, posted := make(kinds.Values), make(url.Values)
	must(t, json.Unmarshal(k.Examples[0], &example))

	for alias, name := range k.Alias {
		if raw, ok := example[alias]; ok {
			delete(example, alias)
			example[name] = raw
		}
	}

	// Omit fields that are not in the form from both.
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
			posted.Set(f.Name, map[bool]string{true: "", false: "false"}[f.Default != nil && !f.Nullable])
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
	base := "/dashboard/projects/" + w.one.ID

	for _, k := range kinds.Builtin().All() {
		posted, want := typed(t, k)
		at := base + "/kinds/" + k.Path
		if posted.Has("calling_handler_resource_id") { // the example names a missing resource
			posted.Del("calling_handler_resource_id")
			posted.Del("call_handler")
		}

		// The form creates the resource with these values.
		a := b.post(at, at, posted)
		where := a.Header.Get("Location")
		if shown := k.Type == fabric.EndpointKind && a.StatusCode == http.StatusOK; !shown &&
			a.StatusCode != http.StatusSeeOther {
			t.Errorf("creating the example of %s returned %s: %s", k.Path, a.Status, a.body)
			continue
		}

		all, err := w.fabric.Resources.List(context.Background(), w.one.ID, k, page.Query{Size: 10})
		must(t, err)
		created := all.Items[0]
		for name, value := range want {
			f := k.Field(name)
			if f.WriteOnly || !posted.Has(name) {
				continue
			}
			if got := string(created.Fields[name]); !sameJSON(t, got, string(value)) {
				t.Errorf("%s of %s is %s, want %s", name, k.Path, got, value)
			}
		}

		// The resource's page shows the values.
		if k.Type == fabric.EndpointKind {
			where = base + "/resources/" + created.ID
		}
		shown := b.get(strings.TrimSuffix(where, "?done=resourceadded"))
		if !strings.Contains(shown.body, created.ID) ||
			!strings.Contains(shown.body, "/api/fabric/resources/"+k.Path+"/"+created.ID) {
			t.Errorf("the page of %s returned %s without its id or URL", k.Path, shown.Status)
		}

		// Saving the unedited form changes nothing.
		edit := base + "/resources/" + created.ID + "/edit"
		again := url.Values{}
		for name, values := range posted {
			if f := k.Field(name); f != nil && !f.WriteOnly {
				again[name] = values
			}
		}
		b.post(edit, edit, again).leadsTo(t, base+"/resources/"+created.ID+"?done=changed")

		after, err := w.fabric.Resources.Find(context.Background(), w.one.ID, k, created.ID)
		must(t, err)
		if !reflect.DeepEqual(after, created) {
			t.Errorf("saving the unedited form for %s changed the resource to %+v, want %+v", k.Path, after, created)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	must(t, json.Unmarshal([]byte(a), &x))
	must(t, json.Unmarshal([]byte(b), &y))
	return reflect.DeepEqual(x, y)
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

// TestResourceFaults shows that a form reports errors next to their fields, and keeps what was
// typed, except secrets. It does not overwrite changes by others. To delete a resource, its name
// must be typed.
func TestResourceFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID

	at := base + "/kinds/freeswitch_connectors"
	a := b.post(at, at, url.Values{"name": {"<b>PBX"}, "token": {"no uuid at all"}})
	for _, want := range []string{`<a href="#f-token">Token must be a uuid.`, `value="&lt;b&gt;PBX"`,
		`id="f-token-fault"`, `aria-invalid="true"`} {
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) {
			t.Errorf("an invalid connector returned %s, want %s in the page", a.Status, want)
		}
	}

	if strings.Contains(a.body, "no uuid at all") {
		t.Error("the form shows the typed secret again")
	}

	// Pages never show a stored secret.
	const secret = "8a0a6f6e-3a3a-4d2e-9a51-5f8b4d3a2c10"
	created := b.post(at, at, url.Values{"name": {"PBX"}, "token": {secret}})
	one := strings.TrimSuffix(created.Header.Get("Location"), "?done=resourceadded")
	for _, page := range []string{one, one + "/edit"} {
		if a := b.get(page); a.StatusCode != http.StatusOK || strings.Contains(a.body, secret) {
			t.Errorf("%s returned %s, want 200 without the secret", page, a.Status)
		}
	}

	// Invalid JSON is reported with its line.
	agents := base + "/kinds/ai_agents"
	a = b.post(agents, agents, url.Values{"name": {"Bo"}, "prompt": {"{\n\"text\": oops\n}"}})
	if !strings.Contains(a.body, "Prompt is not valid JSON: check the quotes, commas and brackets in line 2.") ||
		!strings.Contains(a.body, "oops") {
		t.Errorf("a prompt that is not JSON returned %s: %s", a.Status, a.body)
	}

	plain := b.post(agents, agents, url.Values{"name": {"Bo"}, "prompt": {" You sell\r\nbicycles. "}})
	bo := strings.TrimSuffix(plain.Header.Get("Location"), "?done=resourceadded")
	if typed := b.get(bo + "/edit").body; !strings.Contains(typed, "&#34;text&#34;: &#34;You sell\\nbicycles.&#34;") {
		t.Errorf("a prompt in plain text is stored as %s", between(typed, `<textarea id="f-prompt"`, "</textarea>"))
	}

	// Another operator changes the resource while the form is open.
	k := w.fabric.Resources.Kinds().ByPath("freeswitch_connectors")
	seen := b.get(one+"/edit").find(t, `name="seen" value="([^"]+)"`)
	id := one[strings.LastIndex(one, "/")+1:]
	_, err := w.fabric.Resources.Update(context.Background(), w.one.ID, k, id, kinds.Values{"send_as": []byte(`"7"`)})
	must(t, err)

	if a := b.post(one+"/edit", one+"/edit",
		url.Values{"seen": {seen}, "name": {"Mine"},
			"send_as": {"8"}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "changed by somebody else") || !strings.Contains(a.body, `value="Mine"`) {
		t.Errorf("a form that conflicts with another change returned %s: %s", a.Status, a.body)
	}

	// To delete a resource, its name must be typed.
	if a := b.post(one, one+"/delete", url.Values{"confirm": {"pbx"}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("deleting with a wrong name returned %s, want 422", a.Status)
	}
	b.post(one, one+"/delete", url.Values{"confirm": {"PBX"}}).leadsTo(t, base+"/resources?done=resourcedeleted")
	if a := b.get(one); a.StatusCode != http.StatusNotFound {
		t.Errorf("the page of a deleted resource returned %s, want 404", a.Status)
	}
}

// TestCustomKind shows that a kind defined by an operator gets a form without any code. The members of
// an object become a group of inputs, each with its own error.
func TestCustomKind(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	at := "/dashboard/projects/" + w.one.ID + "/kinds/doors"
	if a := b.get(at); !strings.Contains(a.body, `name="lock.pin"`) || !strings.Contains(a.body, `min="1"`) ||
		!strings.Contains(a.body, `max="9"`) {
		t.Fatalf("the form for a custom kind returned %s: %s", a.Status, a.body)
	}

	if a := b.post(at, at, url.Values{"name": {"Front"}, "lock.pin": {"12"}}); !strings.Contains(a.body,
		`id="f-lock-pin-fault"`) || !strings.Contains(a.body, `value="12"`) {
		t.Errorf("a pin that is too large returned %s: %s", a.Status, a.body)
	}

	a := b.post(at, at, url.Values{"name": {"Front"}, "lock.pin": {"7"}, "tags": {"a\r\n\r\n b "}})
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("creating a door returned %s: %s, want 303", a.Status, a.body)
	}

	all, err := w.fabric.Resources.List(context.Background(), w.one.ID, w.fabric.Resources.Kinds().ByPath("doors"),
		page.Query{Size: 1})
	must(t, err)
	if got := all.Items[0].Fields; string(got["lock"]) != `{"pin":7}` || string(got["tags"]) != `["a","b"]` {
		t.Errorf("the door has the values %s, want pin 7 and the tags a and b", got)
	}
	if !slices.ContainsFunc(all.Items, func(r fabric.Resource) bool { return r.DisplayName == "Front" }) {
		t.Error("no door is named Front")
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
		map[string]json.RawMessage{"title": []byte(`"<b>Hours"`)})
	must(t, err)
	at := "/dashboard/projects/" + w.one.ID + "/resources/" + flow.ID

	if page := b.get(at).body; !strings.Contains(page, "No version has been deployed") {
		t.Error("the page of a new flow does not mention versions")
	}

	// Only the document that the page shows can be deployed.
	document := b.get(at).find(t, `name="document" value="([0-9]+)"`)
	b.post(at, at+"/deploy", url.Values{"document": {document}}).leadsTo(t, at+"?done=deployed")
	if a := b.post(at, at+"/deploy",
		url.Values{"document": {"99"}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "must be "+document) {
		t.Errorf("deploying a document that is not current returned %s, want 422 that names the current one",
			a.Status)
	}

	// An earlier version can be deployed again.
	version := b.get(at).find(t, `name="version" value="([^"]+)"`)
	b.post(at, at+"/deploy", url.Values{"version": {version}}).leadsTo(t, at+"?done=deployed")
	unknown := url.Values{"version": {"0199a000-0000-7000-8000-0000000000aa"}}
	if a := b.post(at, at+"/deploy", unknown); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("deploying an unknown version returned %s, want 422", a.Status)
	}

	found, err := w.fabric.Resources.ListVersions(t.Context(), w.one.ID, flows, flow.ID, firstPage)
	if err != nil || len(found.Items) != 2 {
		t.Errorf("there are %d versions, want 2: %v", len(found.Items), err)
	}

	// Viewers and kinds without versions cannot deploy.
	if page := viewer.get(at).body; strings.Contains(page, `id="deploy"`) ||
		strings.Contains(page, "Deploy again") || !strings.Contains(page, "Versions") {
		t.Error("the page lets viewers deploy, or lacks the versions")
	}

	room, err := w.fabric.Resources.Create(t.Context(), w.one.ID, w.fabric.Resources.Kinds().ByPath("conference_rooms"),
		map[string]json.RawMessage{"name": []byte(`"room"`)})
	must(t, err)
	other := "/dashboard/projects/" + w.one.ID + "/resources/" + room.ID
	if a := b.post(other, other+"/deploy", url.Values{"document": {"1"}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("deploying a room returned %s, want 404", a.Status)
	}
}
