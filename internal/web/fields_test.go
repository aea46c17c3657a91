package web_test

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

func TestFields(t *testing.T) {
	const form = "application/x-www-form-urlencoded"

	tests := []struct {
		kind, body, want string
		fault            problem.Kind
	}{
		{"", "", "map[]", ""},
		{form, "", "map[]", ""},
		{form, "a=1&b=x+y&a=2", "map[a:[1 2] b:[x y]]", ""},
		{"application/json", `{"a":["1","2"],"b":"x","n":3,"t":true,"z":null,"e":[]}`,
			"map[a:[1 2] b:[x] e:[] n:[3] t:[true] z:[]]", ""},
		{"application/json", `{"a":{"b":1}}`, "", problem.Invalid},
		{"application/json", `{"a":[["b"]]}`, "", problem.Invalid},
		{"application/json", `[]`, "", problem.Malformed},
		{"application/json", `{"a":1,"a":2}`, "", problem.Malformed},
		{form, "a=%ff", "", problem.Malformed},
		{form, `{"a":1}`, "", problem.Unsupported},
		{"text/plain", "a=1", "", problem.Unsupported},
		{"", "a=1", "", problem.Unsupported},
	}

	for _, tt := range tests {
		fields, err := web.Fields(post(tt.kind, tt.body))
		if p := problem.First(err); tt.fault != "" && (p == nil || p.Kind != tt.fault) || tt.fault == "" &&
			(err != nil || fmt.Sprint(fields) != tt.want) {
			t.Errorf("Fields of %s %q = %v, %v, want %s %s", tt.kind, tt.body, fields, err, tt.want, tt.fault)
		}
	}
}
