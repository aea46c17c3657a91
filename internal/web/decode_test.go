package web_test

import (
	"bytes"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

type thing struct {
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	Tags  []string `json:"tags"`
	On    *bool    `json:"on"`
}

func post(kind, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	return r
}

func TestDecode(t *testing.T) {
	in, err := web.Decode[thing](post("application/json",
		`{"name":"a","count":2,"tags":["x"],"on":false,"other":{}}`))
	if err != nil || in.Name != "a" || in.Count != 2 || len(in.Tags) != 1 || in.On == nil || *in.On {
		t.Errorf("Decode = %+v, %v", in, err)
	}

	in, err = web.Decode[thing](post("application/json", `{"name":1,"count":"2","tags":{},"on":"yes"}`))
	var params []string
	for _, p := range problem.All(err) {
		params = append(params, p.Param+": "+p.Message)
	}

	want := "name: name must be a string|count: count must be an integer|" +
		"tags: tags must be an array, each of its elements a string|on: on must be true or false"
	if got := strings.Join(params, "|"); got != want {
		t.Errorf("Decode = %+v with faults %q, want %q", in, got, want)
	}

	form := url.Values{"name": {"a"}}.Encode()
	if in, err := web.Decode[thing](post("application/x-www-form-urlencoded", form)); err != nil || in.Name != "a" {
		t.Errorf("Decode of a form = %+v, %v", in, err)
	}

	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	if err := errors.Join(m.WriteField("name", "a"), m.Close()); err != nil {
		t.Fatal(err)
	}
	if in, err := web.Decode[thing](post(m.FormDataContentType(), body.String())); err != nil || in.Name != "a" {
		t.Errorf("Decode of a multipart form = %+v, %v", in, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name, kind, body string
		want             problem.Kind
	}{
		{"nothing", "application/json", "", problem.Malformed},
		{"an array", "application/json", "[]", problem.Malformed},
		{"cut off", "application/json", `{"name":`, problem.Malformed},
		{"something behind", "application/json", `{} {}`, problem.Malformed},
		{"a member twice", "application/json", `{"name":"a","name":"b"}`, problem.Malformed},
		{"a byte order mark", "application/json", "\ufeff{}", problem.Malformed},
		{"not UTF-8", "application/json", "{\"name\":\"\xff\"}", problem.Malformed},
		{"NaN", "application/json", `{"count":NaN}`, problem.Malformed},
		{"deep", "application/json", `{"name":` + strings.Repeat("[", 100_000) + `}`, problem.Malformed},
		{"many members", "application/json", "{" + members(257) + "}", problem.Malformed},
		{"large", "application/json", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, problem.TooLarge},
		{"a large form", "application/x-www-form-urlencoded", "name=" + strings.Repeat("x", 1<<20), problem.TooLarge},
		{"text", "text/plain", "{}", problem.Unsupported},
		{"no type", "", "{}", problem.Unsupported},
		{"a strange type", ";;;", "{}", problem.Unsupported},
		{"UTF-16", "application/json; charset=utf-16", "{}", problem.Unsupported},
		{"a field twice", "application/x-www-form-urlencoded", "name=a&name=b", problem.Malformed},
		{"a bad escape", "application/x-www-form-urlencoded", "name=%zz", problem.Malformed},
		{"JSON as a form", "application/x-www-form-urlencoded", `{"name":"a"}`, problem.Unsupported},
		{"no boundary", "multipart/form-data", "x", problem.Malformed},
	}

	for _, tt := range tests {
		if _, err := web.Decode[thing](post(tt.kind, tt.body)); !errors.Is(err, tt.want) {
			t.Errorf("%s: Decode = %v, want %v", tt.name, err, tt.want)
		}
	}
}

// members returns n members of an object, separated by commas.
func members(n int) string {
	var all []string
	for i := range n {
		all = append(all, `"m`+strconv.Itoa(i)+`":0`)
	}
	return strings.Join(all, ",")
}

func TestDecodeTakesManyMembers(t *testing.T) {
	if in, err := web.Decode[thing](post("application/json", `{"name":"a",`+members(255)+"}")); err != nil ||
		in.Name != "a" {
		t.Errorf("Decode of 256 members = %+v, %v", in, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("application/json", `{"name":"a","count":2}`)
	f.Add("application/x-www-form-urlencoded", "name=a")
	f.Fuzz(func(t *testing.T, kind, body string) {
		if _, err := web.Decode[thing](post(kind, body)); err != nil && problem.First(err) == nil {
			t.Errorf("Decode(%q, %q) = %v, which is no problem", kind, body, err)
		}
	})
}
