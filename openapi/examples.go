package openapi

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/fabric/kinds"
)

// exampleID is the id of a resource in examples.
const exampleID = "5b2a7c9e-3e1d-4b8a-9c66-7d0f4e2b8a13"

// exampleIDs maps the names of members that contain an ID or an address to examples.
var exampleIDs = map[string]string{
	"id":          exampleID,
	"project_id":  "2f9d1c1a-6b5e-4c0e-9a51-0d7e3c9b1a10",
	"resource_id": exampleID,
	"uri":         "sip:help@support.example.org",
}

// exampleOf returns the value of f in the example of k, or nil.
func exampleOf(k *kinds.Kind, f kinds.Field) *yaml.Node {
	if len(k.Examples) == 0 {
		return nil
	}
	whole, err := parse(k.Examples[0])
	if err != nil {
		return nil
	}
	if v := get(whole, f.Name); v != nil {
		return v
	}
	return get(whole, aliasOf(k, f.Name))
}

// exampleBodies returns example bodies for creating and for updating a resource. If the kind has no
// example of them, a new resource has the required members, and an update changes the display name.
func exampleBodies(k *kinds.Kind) (creation, update string) {
	switch len(k.Examples) {
	case 0:
		creation = sampleBody(k.Fields, func(f kinds.Field) bool { return f.Required })
	default:
		creation = string(k.Examples[0])
	}

	if len(k.Examples) > 1 {
		return creation, string(k.Examples[1])
	}
	update = sampleBody(k.Fields, func(f kinds.Field) bool { return f.Name == k.Meta.Name[0] })
	return creation, update
}

// sampleBody returns a JSON object with samples of the fields that are selected.
func sampleBody(fields []kinds.Field, isSelected func(kinds.Field) bool) string {
	body := make(map[string]json.RawMessage)
	for _, f := range fields {
		if isSelected(f) {
			body[f.Name] = sample(f)
		}
	}
	raw, _ := json.Marshal(body) // encoding valid JSON cannot fail
	return string(raw)
}

// sample returns a value that the field f accepts.
func sample(f kinds.Field) json.RawMessage {
	var v any
	switch {
	case f.Default != nil:
		return f.Default
	case len(f.Enum) > 0:
		v = f.Enum[0]
	case f.Format != "":
		v = map[string]string{
			"uri":       "https://pbx.example.org/answer",
			"uuid":      exampleID,
			"date-time": "2026-11-21T08:00:00Z",
		}[f.Format]
	default:
		v = map[string]any{
			"string":  f.Name,
			"integer": 1,
			"boolean": true,
			"object":  map[string]any{},
			"array":   []any{},
		}[f.Type]
	}

	raw, _ := json.Marshal(v) // encoding plain values cannot fail
	return raw
}
