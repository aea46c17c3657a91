package web_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

func TestFields(t *testing.T) {
	const (
		json = "application/json"
		form = "application/x-www-form-urlencoded"
	)

	for _, tt := range []struct {
		kind, body string
		want       string // the fields, as package fmt prints them
	}{
		{"", "", "map[]"},
		{form, "", "map[]"},
		{form, "a=1&b=x+y&a=2", "map[a:[1 2] b:[x y]]"},
		{json, `{"a":["1","2"],"b":"x"}`, "map[a:[1 2] b:[x]]"},
		{json, `{"n":3,"t":true,"z":null,"e":[]}`, "map[e:[] n:[3] t:[true] z:[]]"},
	} {
		fields, err := web.Fields(post(tt.kind, tt.body))
		if err != nil {
			t.Errorf("Fields of %s %q: %v", tt.kind, tt.body, err)
			continue
		}
		if got := fmt.Sprint(fields); got != tt.want {
			t.Errorf("Fields of %s %q = %s, want %s", tt.kind, tt.body, got, tt.want)
		}
	}

	for _, tt := range []struct {
		kind, body string
		want       problem.Kind
	}{
		{json, `{"a":{"b":1}}`, problem.Invalid},
		{json, `{"a":[["b"]]}`, problem.Invalid},
		{json, `[]`, problem.Malformed},
		{json, `{"a":1,"a":2}`, problem.Malformed},
		{form, "a=%ff", problem.Malformed},
		{form, `{"a":1}`, problem.Unsupported},
		{"text/plain", "a=1", problem.Unsupported},
		{"", "a=1", problem.Unsupported},
	} {
		if fields, err := web.Fields(post(tt.kind, tt.body)); !errors.Is(err, tt.want) {
			t.Errorf("Fields of %s %q = %v, %v, want %v", tt.kind, tt.body, fields, err, tt.want)
		}
	}
}
