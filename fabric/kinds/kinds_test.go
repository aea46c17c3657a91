package kinds

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
)

// validValue returns a valid value for a field.
func validValue(t *testing.T, f Field) json.RawMessage {
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

// completeValues returns values for all fields that a caller may set.
func completeValues(t *testing.T, k *Kind) Values {
	v := make(Values)
	for _, f := range k.Fields {
		if !f.ReadOnly {
			v[f.Name] = validValue(t, f)
		}
	}
	return v
}

// TestNew shows that every kind accepts a complete document and returns it unchanged.
func TestNew(t *testing.T) {
	for _, k := range load(t, "").All() {
		complete := completeValues(t, k)
		values, err := k.New(complete)
		if err != nil {
			t.Fatalf("%s: New of a complete document: %v", k.Type, err)
		}
		if diff := cmp.Diff(complete, values); diff != "" {
			t.Errorf("%s: New of a complete document (-want +got):\n%s", k.Type, diff)
		}
		if k.DisplayName(values) == "" {
			t.Errorf("%s has no display name", k.Type)
		}

		// Members that callers cannot set are ignored.
		more := maps.Clone(complete)
		more["id"] = []byte(`"x"`)
		more["project_id"] = []byte(`"y"`)
		more["no_such"] = []byte(`{}`)
		for _, f := range k.Fields {
			if f.ReadOnly {
				more[f.Name] = []byte(`"ours"`)
			}
		}
		got, err := k.New(more)
		if err != nil {
			t.Fatalf("%s: New with members that cannot be set: %v", k.Type, err)
		}
		if diff := cmp.Diff(values, got); diff != "" {
			t.Errorf("%s: New with members that cannot be set (-want +got):\n%s", k.Type, diff)
		}
	}
}

// TestWrongTypes shows that one error reports every field with a wrong type.
func TestWrongTypes(t *testing.T) {
	for _, k := range load(t, "").All() {
		sent := make(Values)
		var want []string
		for _, f := range k.Fields {
			if !f.ReadOnly {
				sent[f.Name] = []byte(`17.5`)
				want = append(want, f.Name)
			}
		}

		_, err := k.New(sent)
		var got []string
		for _, p := range problem.All(err) {
			got = append(got, p.Param)
			if p.Kind != problem.Invalid {
				t.Errorf("%s: %v has the kind %s, want Invalid", k.Type, p, p.Kind)
			}
			if p.Code != "invalid_parameter" {
				t.Errorf("%s: %v has the code %s, want invalid_parameter", k.Type, p, p.Code)
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
		old := completeValues(t, k)
		for _, f := range k.Fields {
			if f.ReadOnly {
				continue
			}
			got, err := k.Change(old, Values{f.Name: old[f.Name]})
			if err != nil {
				t.Fatalf("%s: Change of %s: %v", k.Type, f.Name, err)
			}
			if diff := cmp.Diff(old, got); diff != "" {
				t.Errorf("%s: Change of %s (-want +got):\n%s", k.Type, f.Name, diff)
			}
			if !f.Required {
				continue
			}
			_, err = k.Change(old, Values{f.Name: []byte("null")})
			if p := problem.First(err); p == nil || p.Code != "missing_required_parameter" {
				t.Errorf("%s: Change of %s to null: got %v, want an error about a missing member",
					k.Type, f.Name, err)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	c := load(t, "")
	const missing, invalid, notHTTP = "missing_required_parameter", "invalid_parameter", "not_an_http_url"
	tests := []struct {
		path, sent                       string
		wantParam, wantCode, wantMessage string
	}{
		{
			"swml_scripts", `{}`,
			"display_name", missing, "display_name is required",
		},
		{
			"swml_scripts", `{"name":" ","contents":{}}`,
			"display_name", missing, "is required",
		},
		{
			"swml_scripts", `{"name":"a","contents":"x"}`,
			"contents", invalid, "contents must be an object",
		},
		{
			"cxml_webhooks", `{"primary_request_url":"javascript:alert(1)"}`,
			"primary_request_url", notHTTP, "http or https",
		},
		{
			"cxml_webhooks", `{"primary_request_url":"https://a:b@c.example"}`,
			"primary_request_url", notHTTP, "http or https",
		},
		{
			"cxml_webhooks", `{"primary_request_url":"https://c.example","used_for":"faxes"}`,
			"used_for", invalid, "one of calling, messaging",
		},
		{
			"conference_rooms", `{"name":"a","max_members":301}`,
			"max_members", invalid, "max_members must be at most 300",
		},
		{
			"conference_rooms", `{"name":"a\u0000b"}`,
			"name", invalid, "control characters",
		},
		{
			"conference_rooms", `{"name":"` + strings.Repeat("ü", 256) + `"}`,
			"name", invalid, "too long (maximum is 255",
		},
		{
			"ring_groups", `{"name":"a","members":["/private/a"],"ring_seconds":61}`,
			"ring_seconds", invalid, "ring_seconds must be at most 60",
		},
		{
			"ring_groups", `{"name":"a","members":["/private/a"],"ring_seconds":0}`,
			"ring_seconds", invalid, "ring_seconds must be at least 5",
		},
		{
			"ring_groups", `{"name":"a","members":["/a"` + strings.Repeat(`,"/a"`, 100) + `]}`,
			"members", invalid, "members has too many items (maximum is ",
		},
		{
			"sip_gateways", `{"name":"a","uri":"b","encryption":"default","ciphers":[],"codecs":["PCMU","PCMU"]}`,
			"codecs", invalid, "codecs must not contain an item twice",
		},
		{
			"sip_gateways", `{"name":"a","uri":"b","encryption":"default","ciphers":["x"],"codecs":[]}`,
			"ciphers", invalid, "ciphers.0",
		},
		{
			"sip_gateways",
			`{"name":"a","uri":"b","encryption":"default","ciphers":[],"codecs":[],"prefixes":["+43","49"]}`,
			"prefixes", invalid, "prefixes.1 must be the beginning of a phone number with its country code",
		},
	}

	for _, tt := range tests {
		var sent Values
		if err := json.Unmarshal([]byte(tt.sent), &sent); err != nil {
			t.Fatal(err)
		}
		_, err := c.ByPath(tt.path).New(sent)
		p := problem.First(err)
		if p == nil {
			t.Fatalf("New(%s): got %v, want a problem", tt.sent, err)
		}
		if p.Param != tt.wantParam {
			t.Errorf("New(%s): the parameter is %q, want %q", tt.sent, p.Param, tt.wantParam)
		}
		if p.Code != tt.wantCode {
			t.Errorf("New(%s): the code is %q, want %q", tt.sent, p.Code, tt.wantCode)
		}
		if !strings.Contains(p.Message, tt.wantMessage) {
			t.Errorf("New(%s): the message is %q, want %q in it", tt.sent, p.Message, tt.wantMessage)
		}
	}
}

// TestTimes shows that a kind accepts only times that package time can parse.
func TestTimes(t *testing.T) {
	room := load(t, "").ByType("video_room")
	field := *room.Field("join_from")
	for raw, want := range map[string]bool{
		`"2026-12-31T23:59:59Z"`:          true,
		`"2026-12-31T23:59:59.5+01:00"`:   true,
		`null`:                            true,
		`"2026-12-31T23:59:60Z"`:          false,
		`"2026-12-31t23:59:59z"`:          false,
		`"2026-02-29T12:00:00Z"`:          false,
		`"2026-12-31"`:                    false,
		`"2026-12-31T23:59:59"`:           false,
		`"Thu, 31 Dec 2026 23:59:59 GMT"`: false,
	} {
		err := room.checkField(field, json.RawMessage(raw))
		if accepted := err == nil; accepted != want {
			t.Errorf("checkField(%s) = %v, want it accepted: %t", raw, err, want)
			continue
		}
		var at *time.Time
		if err := json.Unmarshal([]byte(raw), &at); want && err != nil {
			t.Errorf("reading %s: %v", raw, err)
		}
	}
}

// TestIntegers shows that integers are stored in the form that package json reads into an int.
func TestIntegers(t *testing.T) {
	room := load(t, "").ByType("video_room")
	for raw, want := range map[string]string{
		"20":     "20",
		"20.0":   "20",
		"2e1":    "20",
		"0.2E+2": "20",
		"-0.0":   "0",
	} {
		sent := Values{"name": []byte(`"a"`), "max_members": []byte(raw)}
		values, err := room.New(sent)
		if err != nil {
			t.Errorf("New with max_members %s: %v", raw, err)
		}
		if got := string(values["max_members"]); got != want {
			t.Errorf("New stores max_members %s as %s, want %s", raw, got, want)
		}
		values, err = room.Change(values, sent)
		if err != nil {
			t.Errorf("Change to max_members %s: %v", raw, err)
		}
		if got := string(values["max_members"]); got != want {
			t.Errorf("Change stores max_members %s as %s, want %s", raw, got, want)
		}
	}
}

// TestNumbers shows that numbers that are slow to process are rejected, however short their text is.
func TestNumbers(t *testing.T) {
	slow := []string{
		"1e999999",
		"1E-999999",
		"1e99999999999999999999",
		strings.Repeat("9", 401),
		"[1e999999,2e999999,3e999999]",
		`{"a":[{"b":1e999999}]}`,
	}
	for _, k := range load(t, "").All() {
		for _, f := range k.Fields {
			for _, raw := range slow {
				p := problem.First(k.checkField(f, json.RawMessage(raw)))
				if p == nil {
					t.Errorf("%s: checkField(%s, %.30s): got no problem, want one", k.Type, f.Name, raw)
				} else if !strings.Contains(p.Error(), "a number that long or large") {
					t.Errorf("%s: checkField(%s, %.30s) = %v, want it to name the number", k.Type, f.Name, raw, p)
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
	v, err := k.New(Values{
		"name":  []byte(`"pbx"`),
		"token": []byte(`"5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d"`),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := string(k.Document([]Member{{"id", []byte(`"1"`)}}, v))
	if want := `{"id":"1","name":"pbx","caller_id":null,"send_as":null}`; got != want {
		t.Errorf("Document = %s, want %s", got, want)
	}
}

// TestDocumentWithoutTitle shows that the document of a room without a display name has the room's
// name instead.
func TestDocumentWithoutTitle(t *testing.T) {
	k := load(t, "").ByType("video_room")
	v, err := k.New(Values{"name": []byte(`"standup"`)})
	if err != nil {
		t.Fatal(err)
	}
	got := string(k.Document(nil, v))
	if want := `"name":"standup","display_name":"standup"`; !strings.Contains(got, want) {
		t.Errorf("Document = %s, want %s in it", got, want)
	}
}

// TestDocumentReadOnly shows that a document has the defaults of read-only members that are not stored.
// Some clients require these members, also in resources that are older than the members.
func TestDocumentReadOnly(t *testing.T) {
	k := load(t, "").ByType("cxml_script")
	v, err := k.New(Values{"display_name": []byte(`"a"`), "contents": []byte(`"<Response/>"`)})
	if err != nil {
		t.Fatal(err)
	}
	if stored := v["request_count"]; stored != nil {
		t.Errorf("New stores the request_count %s, want none", stored)
	}
	got := string(k.Document(nil, v))
	if want := `"request_count":0,"last_accessed_at":null`; !strings.Contains(got, want) {
		t.Errorf("Document = %s, want %s in it", got, want)
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

	// The bound is for the checks of all kinds together.
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
				if err != nil {
					if !errors.Is(err, problem.Invalid) {
						t.Errorf("%s: New = %v, want Invalid", k.Type, err)
					}
					continue
				}
				if doc := k.Document(nil, v); !json.Valid(doc) {
					t.Errorf("%s: Document = %s, want JSON", k.Type, doc)
				}
			}
		})
	})
}
