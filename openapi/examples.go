package openapi

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/fabric/kinds"
)

// exampleIDs maps the names of members that contain an ID or an address to examples.
var exampleIDs = map[string]string{
	"id":          "5b2a7c9e-3e1d-4b8a-9c66-7d0f4e2b8a13",
	"project_id":  "2f9d1c1a-6b5e-4c0e-9a51-0d7e3c9b1a10",
	"resource_id": "5b2a7c9e-3e1d-4b8a-9c66-7d0f4e2b8a13",
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

// exampleBodies returns example bodies for creating and for updating a resource.
func exampleBodies(k *kinds.Kind) (whole, change string) {
	if len(k.Examples) > 1 {
		return string(k.Examples[0]), string(k.Examples[1])
	}

	sent := make(map[string]json.RawMessage)
	for _, f := range k.Fields {
		if f.Required {
			sent[f.Name] = sample(f)
		}
	}

	raw, _ := json.Marshal(sent) // encoding valid JSON cannot fail
	if len(k.Examples) > 0 {
		raw = k.Examples[0]
	}

	f := *k.Field(k.Meta.Name[0])
	name, _ := json.Marshal(map[string]json.RawMessage{f.Name: sample(f)})
	return string(raw), string(name)
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
			"uuid":      "5b2a7c9e-3e1d-4b8a-9c66-7d0f4e2b8a13",
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
