package kinds

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
)

func load(t *testing.T, dir string) *Catalog {
	t.Helper()
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// good returns a valid value for a field.
func good(t *testing.T, f Field) json.RawMessage {
	t.Helper()
	var v any
	switch {
	case f.Default != nil:
		return f.Default
	case f.Format == "uri":
		v = "https://pbx.example.org/answer"
	case f.Format == "uuid":
		v = "5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d"
	case f.Format == "date-time":
		v = "2026-11-21T08:00:00Z"
	case len(f.Enum) > 0:
		v = f.Enum[0]
	default:
		v = map[string]any{
			"string":  "text",
			"integer": 1,
			"boolean": true,
			"object":  map[string]any{"a": 1},
			"array":   []any{},
		}[f.Type]
	}

	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

// whole returns values for every field of a kind that a caller may set.
func whole(t *testing.T, k *Kind) Values {
	v := make(Values)
	for _, f := range k.Fields {
		if !f.ReadOnly {
			v[f.Name] = good(t, f)
		}
	}
	return v
}

// TestBuiltin compiles the built-in kinds and checks their defaults, which Load skips.
func TestBuiltin(t *testing.T) {
	all := load(t, "").All()
	if len(all) != 14 {
		t.Errorf("there are %d kinds, want 14 in addition to subscribers", len(all))
	}
	c := load(t, "")
	for _, k := range append(all, c.Part("sip_address"), c.Part("sip_credential")) {
		if err := k.try(); err != nil {
			t.Errorf("%s: %v", k.Type, err)
		}
	}
}

// TestNew shows that every kind accepts a complete document and returns it unchanged.
func TestNew(t *testing.T) {
	for _, k := range load(t, "").All() {
		sent := whole(t, k)
		got, err := k.New(sent)
		if diff := cmp.Diff(sent, got); diff != "" || err != nil {
			t.Errorf("%s: New of a complete document: %v\n%s", k.Type, err, diff)
		}
		if k.DisplayName(got) == "" {
			t.Errorf("%s has no display name", k.Type)
		}

		sent["id"], sent["project_id"], sent["no_such"] = []byte(`"x"`), []byte(`"y"`), []byte(`{}`)
		for _, f := range k.Fields {
			if f.ReadOnly {
				sent[f.Name] = []byte(`"ours"`)
			}
		}

		if ignored, err := k.New(sent); cmp.Diff(got, ignored) != "" || err != nil {
			t.Errorf("%s: New with members that cannot be set = %v, %v, want them ignored", k.Type, ignored, err)
		}
	}
}

// TestWrongTypes shows that one error reports every field with a wrong type.
func TestWrongTypes(t *testing.T) {
	for _, k := range load(t, "").All() {
		sent, want := make(Values), []string(nil)
		for _, f := range k.Fields {
			if f.ReadOnly {
				continue
			}
			want = append(want, f.Name)
			sent[f.Name] = []byte(`17.5`)
		}

		_, err := k.New(sent)
		var got []string
		for _, p := range problem.All(err) {
			got = append(got, p.Param)
			if p.Kind != problem.Invalid || p.Code != "invalid_parameter" {
				t.Errorf("%s: %v is %s %s, want Invalid with invalid_parameter", k.Type, p, p.Kind, p.Code)
			}
		}

		if !slices.Equal(got, want) {
			t.Errorf("%s: wrong types are reported for %v, want %v", k.Type, got, want)
		}
	}
}

// TestChange shows that a change of one field keeps the other fields.
func TestChange(t *testing.T) {
	for _, k := range load(t, "").All() {
		old := whole(t, k)
		for _, f := range k.Fields {
			if f.ReadOnly {
				continue
			}
			got, err := k.Change(old, Values{f.Name: old[f.Name]})
			if diff := cmp.Diff(old, got); diff != "" || err != nil {
				t.Errorf("%s: Change of %s: %v\n%s", k.Type, f.Name, err, diff)
			}
			if f.Required {
				if _, err := k.Change(old, Values{f.Name: []byte("null")}); problem.First(err) == nil ||
					problem.First(err).Code != "missing_required_parameter" {
					t.Errorf("%s: Change of %s to null = %v, want an error about a missing member", k.Type, f.Name, err)
				}
			}
		}
	}
}

func TestFaults(t *testing.T) {
	c := load(t, "")
	tests := []struct {
		path, sent, param, code, message string
	}{
		{"swml_scripts", `{}`, "display_name", "missing_required_parameter", "display_name is required"},
		{"swml_scripts", `{"name":" ","contents":{}}`, "display_name", "missing_required_parameter", "is required"},
		{"swml_scripts", `{"name":"a","contents":"x"}`, "contents", "invalid_parameter",
			"contents must be an object"},
		{"cxml_webhooks", `{"primary_request_url":"javascript:alert(1)"}`, "primary_request_url",
			"not_an_http_url", "http or https"},
		{"cxml_webhooks", `{"primary_request_url":"https://a:b@c.example"}`, "primary_request_url",
			"not_an_http_url", "http or https"},
		{"cxml_webhooks", `{"primary_request_url":"https://c.example","used_for":"faxes"}`, "used_for",
			"invalid_parameter", "one of calling, messaging"},
		{"conference_rooms", `{"name":"a","max_members":301}`, "max_members", "invalid_parameter", "300"},
		{"conference_rooms", `{"name":"a\u0000b"}`, "name", "invalid_parameter", "control characters"},
		{"conference_rooms", `{"name":"` + strings.Repeat("ü", 256) + `"}`, "name", "invalid_parameter",
			"too long (maximum is 255"},
		{"ring_groups", `{"name":"a","members":["/private/a"],"ring_seconds":61}`, "ring_seconds",
			"invalid_parameter", "60"},
		{"sip_gateways", `{"name":"a","uri":"b","encryption":"default","ciphers":["x"],"codecs":[]}`,
			"ciphers", "invalid_parameter", "ciphers.0"},
	}

	for _, tt := range tests {
		var sent map[string]json.RawMessage
		if err := json.Unmarshal([]byte(tt.sent), &sent); err != nil {
			t.Fatal(err)
		}
		_, err := c.ByPath(tt.path).New(sent)
		p := problem.First(err)
		if p == nil || p.Param != tt.param || p.Code != tt.code || !strings.Contains(p.Message, tt.message) {
			t.Errorf("New(%s) = %+v, want %s on %s with %q", tt.sent, p, tt.code, tt.param, tt.message)
		}
	}
}

// TestNumbers shows that numbers that are short to write but slow to process are rejected.
func TestNumbers(t *testing.T) {
	for _, k := range load(t, "").All() {
		for _, f := range k.Fields {
			for _, raw := range []string{
				"1e999999", "1E-999999", "1e99999999999999999999", strings.Repeat("9", 401),
				"[1e999999,2e999999,3e999999]", `{"a":[{"b":1e999999}]}`,
			} {
				if err := k.checkField(f, json.RawMessage(raw)); problem.First(err) == nil ||
					!strings.Contains(err.Error(), "a number that long or large") {
					t.Errorf("%s: %s = %.30s: %v, want an error about the number", k.Type, f.Name, raw, err)
				}
			}
		}
	}

	flow := load(t, "").ByType("call_flow")
	numbers := json.RawMessage(`{"a":[-1.5e300,2.5E-7,12345678901234567890]}`)
	if err := flow.checkField(*flow.Field("flow_data"), numbers); err != nil {
		t.Errorf("checkField(%s) = %v, want no error", numbers, err)
	}
}

func TestDocument(t *testing.T) {
	k := load(t, "").ByType("freeswitch_connector")
	v, err := k.New(Values{"name": []byte(`"pbx"`), "token": []byte(`"5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d"`)})
	if err != nil {
		t.Fatal(err)
	}
	got := string(k.Document([]Member{{"id", []byte(`"1"`)}}, v))
	if want := `{"id":"1","name":"pbx","caller_id":null,"send_as":null}`; got != want {
		t.Errorf("Document = %s, want %s", got, want)
	}
}

// TestLoad shows that operators can add kinds as files. An invalid file is refused with the reason.
func TestLoad(t *testing.T) {
	const fax = `{"title":"Fax",
		"x-kind":{"type":"fax_line","path":"fax_lines","key":"fax_line","update":"PUT",
			"name":["name"],"address":"app","channels":["audio"]},
		"type":"object","required":["name"],"properties":{"name":{"type":"string","default":"fax"}}}`
	tests := []struct{ name, text, want string }{
		{"good", fax, ""},
		{"not JSON", `{`, "unexpected end"},
		{"taken", strings.Replace(fax, `"fax_lines"`, `"subscribers"`, 1), "already"},
		{"a type that exists", strings.Replace(fax, `"fax_line",`, `"ai_agent",`, 1), "already"},
		{"path", strings.Replace(fax, `"fax_lines"`, `"../x"`, 1), "x-kind.path"},
		{"method", strings.Replace(fax, `"PUT"`, `"POST"`, 1), "x-kind.update"},
		{"default", strings.Replace(fax, `"default":"fax"`, `"default":7`, 1), "the default of name"},
		{"type", strings.Replace(fax, `"string"`, `"number"`, 1), "unknown type"},
		{"required", strings.Replace(fax, `["name"],"properties"`, `["nome"],"properties"`, 1), "not a property"},
		{"elsewhere", strings.Replace(fax, `"type":"string",`, `"type":"string","$ref":"file:///etc/passwd",`,
			1), "cannot refer"},
	}

	for _, tt := range tests {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "fax.json"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(dir)
		switch {
		case tt.want == "" && (err != nil || c.ByPath("fax_lines") == nil):
			t.Errorf("%s: Load = %v, want the kind", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "fax.json")):
			t.Errorf("%s: Load = %v, want fax.json and %q", tt.name, err, tt.want)
		}
	}

	if _, err := Load(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("Load of a missing directory = %v, want no error", err)
	}
}

func FuzzNew(f *testing.F) {
	c, err := Load("")
	if err != nil {
		f.Fatal(err)
	}

	f.Add(`{"name":"a","topic":"b"}`)
	f.Add(`{"name":"` + strings.Repeat("a", 1<<16) + `"}`)
	f.Add(`{"name":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`)
	f.Add(`{"members":[` + strings.Repeat(`"a",`, 1<<13) + `"a"]}`)

	// About twenty kinds each check the values.
	bound := fuzzcost.Bound{
		CPU:        20 * time.Millisecond,
		CPUPerByte: 10 * time.Microsecond,
		Heap:       1 << 20,
		PerByte:    4 << 10,
	}
	f.Fuzz(func(t *testing.T, text string) {
		var sent map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &sent) != nil {
			return
		}

		bound.Check(t, len(text), func() {
			for _, k := range c.All() {
				v, err := k.New(sent)
				if err != nil && !errors.Is(err, problem.Invalid) {
					t.Errorf("%s: New = %v, want problem.Invalid", k.Type, err)
				}
				if err == nil && !json.Valid(k.Document(nil, v)) {
					t.Errorf("%s: Document of %s is not JSON", k.Type, text)
				}
			}
		})
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load(""); err != nil {
			b.Fatal(err)
		}
	}
}
