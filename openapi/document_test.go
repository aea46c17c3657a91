package openapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/openapi/openapitest"
)

// check builds a document and checks that it is valid and consistent.
func check(t *testing.T, c openapi.Config) *openapitest.Document {
	t.Helper()
	d, err := openapitest.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Valid(); err != nil {
		t.Fatal(err)
	}

	tags := make(map[string]bool)
	for _, tag := range d.Tags {
		if tags[tag.Name] {
			t.Errorf("the tag %s is described twice", tag.Name)
		}
		tags[tag.Name] = true
	}

	ids := make(map[string]string)
	for path, item := range d.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Summary == "" {
				t.Errorf("%s %s has no summary", method, path)
			}
			if len(op.Tags) != 1 {
				t.Errorf("%s %s has the tags %v, want one", method, path, op.Tags)
			}
			for _, tag := range op.Tags {
				if !tags[tag] {
					t.Errorf("%s %s has the tag %s, which is not described", method, path, tag)
				}
			}
			if op.OperationID == "" {
				t.Errorf("%s %s has no operationId", method, path)
			}
			if other, ok := ids[op.OperationID]; ok {
				t.Errorf("%s %s has the operationId %s, which %s also has", method, path, op.OperationID, other)
			}
			ids[op.OperationID] = method + " " + path
		}
	}

	return d
}

// TestValid shows that the document is valid and consistent.
func TestValid(t *testing.T) { check(t, openapi.Config{}) }

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		if _, err := openapi.Build(openapi.Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTakenNames shows that operators may give their kinds the names of existing schemas, later
// areas or other kinds.
func TestTakenNames(t *testing.T) {
	const kind = `{"title":%q,"type":"object","required":["name"],
		"properties":{"name":{"type":"string","description":"of %[2]s"}},
		"x-kind":{"type":%[2]q,"path":"own_%[2]s","key":%[2]q,"update":"PUT","name":["name"],"address":"app",
			"channels":["audio"],"versions":true,"flat":true}}`
	tests := []struct{ title, typ string }{
		{"Webhook", "webhook"},
		{"Delivery", "delivery"},
		{"API key", "key"},
		{"Key", "api_key"},
		{"Recording", "recording"},
		{"Recording", "call_recording"},
		{"SIP credential", "sip_credential"},
		{"SIP credential", "sip_credential_update_request"},
		{"Resource", "resource"},
		{"Error", "error"},
		{"Link", "links"},
		{"Thing", "thing"},
		{"Thing", "thing_version"},
		{"Thing", "thing_resource"},
		{"Thing", "thing_kind"},
		{"Call flow", "call_flow_"},
	}

	dir := t.TempDir()
	for _, tt := range tests {
		file := filepath.Join(dir, tt.typ+".json")
		if err := os.WriteFile(file, fmt.Appendf(nil, kind, tt.title, tt.typ), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	catalog, err := kinds.Load(dir)
	if err != nil {
		t.Fatal(err)
	}

	d := check(t, openapi.Config{Kinds: catalog})
	for _, tt := range tests {
		get := d.Paths.Find("/api/fabric/resources/own_" + tt.typ + "/{id}").Get
		response := get.Responses.Value("200").Value
		schema := response.Content["application/json"].Schema.Value
		if got, want := schema.Properties["name"].Value.Description, "of "+tt.typ; got != want {
			t.Errorf("the schema of %s describes name as %q, want %q", tt.typ, got, want)
		}
	}
}
