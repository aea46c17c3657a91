package contract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/selvage/selvage/test/harness"
)

// unprovoked lists statuses that no test in this package provokes, because they need an internal
// fault or a heavy load.
var unprovoked = []string{"429", "500", "503"}

// TestOperations shows that every operation of the fabric returns all its documented statuses. It
// calls each operation with and without permission, for another project's objects and with invalid
// requests. The harness checks every response against the document.
func TestOperations(t *testing.T) {
	w := newWorld(t)
	for _, op := range w.operations("Fabric", "Kinds of resources", "Management") {
		t.Run(op.OperationID, func(t *testing.T) {
			seen := make(map[string]bool)
			see := func(a harness.Answer) harness.Answer {
				seen[strconv.Itoa(a.Status)] = true
				return a
			}

			w.succeeds(t, op, see)
			w.refuses(t, op, see)
			w.hides(t, op, see)
			w.asksForPages(t, op, see)
			w.refusesBodies(t, op, see)
			w.refusesOther(t, op, see)

			for status := range op.Responses.Map() {
				if !seen[status] && !slices.Contains(unprovoked, status) {
					t.Errorf("the status %s is documented, but no request provoked it", status)
				}
			}
		})
	}
}

// A look is a function that records the status of a response and returns the response.
type look func(harness.Answer) harness.Answer

// schemes returns the security schemes that may call an operation.
func (op operation) schemes() (all []string) {
	for _, requirement := range *op.Security {
		for name := range requirement {
			all = append(all, name)
		}
	}
	return all
}

// succeeds calls the operation with each kind of permitted credentials.
func (w *world) succeeds(t *testing.T, op operation, see look) {
	t.Helper()
	who := op.schemes()
	if len(who) == 0 {
		see(w.ask(t, op, nobody(), w.subject(t, op), w.body(t, op))).Want(t, 200, 201, 204)
	}

	for _, name := range who {
		var a harness.Answer
		if op.method == "GET" {
			path, body := w.fixture(t, op)
			a = see(w.ask(t, op, w.who[name], path, body))
		} else {
			a = see(w.ask(t, op, w.who[name], w.subject(t, op), w.bodyFor(t, op, name)))
		}
		if a.Status < 200 || a.Status > 299 {
			t.Errorf("as %s: %d %s, want 200 to 299", name, a.Status, a.Body)
		}
	}
}

// refuses calls the operation without credentials, with a made-up token, with a key without scopes,
// and with credentials of other kinds.
func (w *world) refuses(t *testing.T, op operation, see look) {
	t.Helper()
	who := op.schemes()
	if len(who) == 0 {
		return
	}

	path, body := w.fixture(t, op)
	others := map[string]harness.Option{
		"nobody":                  nobody(),
		"a made-up token":         harness.Bearer("made-up"),
		"a key without any scope": w.weak,
	}
	for name, as := range w.who {
		if !slices.Contains(who, name) {
			others[name] = as
		}
	}

	for name, as := range others {
		if a := see(w.ask(t, op, as, path, body)); a.Status != 401 {
			t.Errorf("as %s: %d %s, want 401", name, a.Status, a.Body)
		}
	}
}

// hides calls the operation for unknown objects and for another project's objects. Both must get the
// same 404.
func (w *world) hides(t *testing.T, op operation, see look) {
	t.Helper()
	if !strings.Contains(op.path, "{") {
		return
	}

	path, body := w.fixture(t, op)
	for _, name := range op.schemes() {
		foreign := see(w.ask(t, op, w.foreign[name], path, body)).Want(t, 404)

		steps, given := strings.Split(path, "/"), strings.Split(op.path, "/")
		for i := range given {
			if !strings.HasPrefix(given[i], "{") {
				continue
			}
			for _, unknown := range []string{"c6b5a4d3-e2f1-4a0b-9c8d-7e6f5a4b3c19", "no-id", "%00"} {
				other := slices.Clone(steps)
				other[i] = unknown
				a := see(w.ask(t, op, w.who[name], strings.Join(other, "/"), body)).Want(t, 404)
				if !bytes.Equal(a.Body, foreign.Body) {
					t.Errorf("another project's object returned %s, and an unknown one %s, want the same",
						foreign.Body, a.Body)
				}
			}
		}
	}
}

// asksForPages calls the operation with invalid paging parameters.
func (w *world) asksForPages(t *testing.T, op operation, see look) {
	t.Helper()
	if op.Parameters.GetByInAndName("query", "page_size") == nil {
		return
	}

	path, _ := w.fixture(t, op)
	as := w.who[op.schemes()[0]]
	for query, param := range map[string]string{
		"page_size=0":    "page_size",
		"page_size=1001": "page_size",
		"page_size=x":    "page_size",
		"page_number=-1": "page_number",
		"page_number=1":  "page_token",
		"page_token=x":   "page_token",
	} {
		wantFault(t, see(w.ask(t, op, as, path+"?"+query, nil)), param)
	}
	see(w.ask(t, op, as, path+"?page_size=1", nil)).Want(t, 200)
}

// refusesBodies sends malformed bodies, a body whose members all have a wrong type, and an empty
// object.
func (w *world) refusesBodies(t *testing.T, op operation, see look) {
	t.Helper()
	if op.RequestBody == nil {
		return
	}

	as := nobody()
	path, _ := w.fixture(t, op)
	if who := op.schemes(); len(who) > 0 {
		as = w.who[who[0]]
	}

	send := func(kind, body string) harness.Answer {
		return see(w.Do(t, op.method, path, as, harness.Body(kind, []byte(body))))
	}

	send("application/json", `{"name":`).Want(t, 400)
	send("application/json", `[]`).Want(t, 400)
	send("application/json", "{\"name\":\"\xff\"}").Want(t, 400)
	send("text/plain", `{}`).Want(t, 415)
	send("application/json", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`).Want(t, 413)

	schema := op.RequestBody.Value.Content["application/json"].Schema.Value
	wrong := make(map[string]any)
	for name := range schema.Properties {
		wrong[name] = 17.5 // not a string, an integer, an object or a list
	}
	text, err := json.Marshal(wrong)
	if err != nil {
		t.Fatal(err)
	}

	a := send("application/json", string(text))
	for name, property := range schema.Properties {
		if !strings.HasPrefix(property.Value.Description, "Another name of") {
			wantFault(t, a, name)
		}
	}

	if len(schema.Required) > 0 {
		a = send("application/json", `{}`)
	}
	for _, name := range schema.Required {
		wantFault(t, a, name)
	}
}

// wantFault checks that an answer is a 422 and that one of its errors names a parameter.
func wantFault(t *testing.T, a harness.Answer, param string) {
	t.Helper()
	var body struct{ Errors []struct{ Attribute string } }
	a.Want(t, 422).Read(t, &body)
	for _, fault := range body.Errors {
		if fault.Attribute == param {
			return
		}
	}
	t.Errorf("%s contains no error for %s", a.Body, param)
}

// refusesOther provokes the documented statuses that the other checks do not provoke.
func (w *world) refusesOther(t *testing.T, op operation, see look) {
	t.Helper()
	as := w.who["basic"]

	switch {
	case op.OperationID == "createEmbedToken":
		see(w.ask(t, op, nobody(), op.path, []byte(`{"token":"c2c_00000000000000000000000000000000"}`))).Want(t, 403)
	case op.Responses.Status(403) != nil && op.Tags[0] == "API keys":
		path, body := w.fixture(t, op)
		see(w.ask(t, op, w.small, path, body)).Want(t, 403)
	case op.OperationID == "rotateClientSecret":
		c := w.NewClient(t, "service", "--scope", "Voice")
		see(w.ask(t, op, w.small, strings.Replace(op.path, "{id}", c.ID, 1), w.body(t, op))).Want(t, 403)
	case op.OperationID == "endOldClientSecret" || op.OperationID == "endOldKeySecret" ||
		op.OperationID == "moveCallOutOfRoom":
		path := w.subject(t, op)
		w.ask(t, op, as, path, nil).Want(t, 204)
		see(w.ask(t, op, as, path, nil)).Want(t, 422)
	case op.method == "DELETE" && op.Responses.Status(422) != nil:
		path := w.subject(t, op)
		a := w.Post(t, "/api/fabric/sip_addresses", as, harness.JSON(map[string]string{
			"name":                        unique("handled"),
			"calling_handler_resource_id": path[strings.LastIndexByte(path, '/')+1:],
		}))
		a.Want(t, 201)
		see(w.ask(t, op, as, path, nil)).Want(t, 422)
	}
}

// TestKinds shows that an update of a resource changes the members that were sent and no others,
// for each kind of resource.
func TestKinds(t *testing.T) {
	w := newWorld(t)
	for _, op := range w.operations("Kinds of resources") {
		if !strings.HasPrefix(op.OperationID, "update") && !strings.HasPrefix(op.OperationID, "patch") &&
			!strings.HasPrefix(op.OperationID, "put") {
			continue
		}
		t.Run(op.OperationID, func(t *testing.T) {
			path := w.subject(t, op)
			before := w.own(t, path)
			body := w.body(t, op)
			change := members(t, body)
			w.ask(t, op, w.who["basic"], path, body).Want(t, 200)
			after := w.own(t, path)

			schema := op.RequestBody.Value.Content["application/json"].Schema.Value
			for name, sent := range change {
				if name = canonical(schema, name); string(after[name]) != string(sent) {
					t.Errorf("%s is %s, want %s", name, after[name], sent)
				}
				delete(before, name)
			}

			for name, was := range before {
				if string(after[name]) != string(was) {
					t.Errorf("%s changed from %s to %s, although it was not sent", name, was, after[name])
				}
			}
		})
	}
}

// canonical returns the name that the server uses for a member in responses.
func canonical(schema *openapi3.Schema, name string) string {
	if of, ok := strings.CutPrefix(schema.Properties[name].Value.Description, "Another name of `"); ok {
		return strings.TrimSuffix(of, "`.")
	}
	return name
}

func members(t *testing.T, text []byte) (m map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// own returns the members of a resource that are specific to its kind.
func (w *world) own(t *testing.T, path string) map[string]json.RawMessage {
	t.Helper()
	a := w.Get(t, path, w.who["basic"]).Want(t, 200)
	all := members(t, a.Body)
	if all["project_id"] == nil {
		return all // the resource has no nested object
	}

	for name, value := range all {
		if strings.HasPrefix(string(value), "{") {
			return members(t, all[name])
		}
	}
	t.Fatalf("%s has no members of its own", a.Body)
	return nil
}
