package web_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/fuzzcost"
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
	body := `{"name":"a","count":2,"tags":["x"],"on":false,"other":{}}`
	got, err := web.Decode[thing](post("application/json", body))
	if err != nil {
		t.Fatal(err)
	}
	want := thing{Name: "a", Count: 2, Tags: []string{"x"}, On: new(bool)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode returns different values (-want +got):\n%s", diff)
	}
}

func TestDecodeWrongTypes(t *testing.T) {
	_, err := web.Decode[thing](post("application/json", `{"name":1,"count":"2","tags":{},"on":"yes"}`))
	type wrong struct{ Param, Message string }
	var got []wrong
	for _, p := range problem.All(err) {
		got = append(got, wrong{p.Param, p.Message})
	}
	want := []wrong{
		{Param: "name", Message: "name must be a string"},
		{Param: "count", Message: "count must be an integer"},
		{Param: "tags", Message: "tags must be an array whose elements are each a string"},
		{Param: "on", Message: "on must be true or false"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode returns different problems (-want +got):\n%s", diff)
	}
}

func TestDecodeForm(t *testing.T) {
	form := url.Values{"name": {"a"}}.Encode()
	got, err := web.Decode[thing](post("application/x-www-form-urlencoded", form))
	if err != nil || got.Name != "a" {
		t.Errorf("Decode of a form = %+v, %v, want the name a", got, err)
	}

	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	if err := errors.Join(m.WriteField("name", "a"), m.Close()); err != nil {
		t.Fatal(err)
	}
	got, err = web.Decode[thing](post(m.FormDataContentType(), body.String()))
	if err != nil || got.Name != "a" {
		t.Errorf("Decode of a multipart form = %+v, %v, want the name a", got, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	const (
		json = "application/json"
		form = "application/x-www-form-urlencoded"
	)
	large := strings.Repeat("x", 1<<20)
	tests := []struct {
		name, kind, body string
		want             problem.Kind
	}{
		{"nothing", json, "", problem.Malformed},
		{"an array", json, "[]", problem.Malformed},
		{"truncated", json, `{"name":`, problem.Malformed},
		{"something after the end", json, `{} {}`, problem.Malformed},
		{"a duplicate member", json, `{"name":"a","name":"b"}`, problem.Malformed},
		{"a byte order mark", json, "\ufeff{}", problem.Malformed},
		{"not UTF-8", json, "{\"name\":\"\xff\"}", problem.Malformed},
		{"NaN", json, `{"count":NaN}`, problem.Malformed},
		{"deep", json, `{"name":` + strings.Repeat("[", 100_000) + `}`, problem.Malformed},
		{"many members", json, "{" + members(257) + "}", problem.Malformed},
		{"large", json, `{"name":"` + large + `"}`, problem.TooLarge},
		{"a large form", form, "name=" + large, problem.TooLarge},
		{"text", "text/plain", "{}", problem.Unsupported},
		{"no content type", "", "{}", problem.Unsupported},
		{"an unknown content type", ";;;", "{}", problem.Unsupported},
		{"UTF-16", "application/json; charset=utf-16", "{}", problem.Unsupported},
		{"a duplicate field", form, "name=a&name=b", problem.Malformed},
		{"a bad escape", form, "name=%zz", problem.Malformed},
		{"JSON as a form", form, `{"name":"a"}`, problem.Unsupported},
		{"no boundary", "multipart/form-data", "x", problem.Malformed},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := web.Decode[thing](post(tt.kind, tt.body)); !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
		})
	}
}

// members returns n members of an object, separated by commas.
func members(n int) string {
	var list []string
	for i := range n {
		list = append(list, `"m`+strconv.Itoa(i)+`":0`)
	}
	return strings.Join(list, ",")
}

func TestDecodeTakesManyMembers(t *testing.T) {
	got, err := web.Decode[thing](post("application/json", `{"name":"a",`+members(255)+"}"))
	if err != nil || got.Name != "a" {
		t.Errorf("Decode of 256 members = %+v, %v, want the name a", got, err)
	}
}

// FuzzDecode shows that every error of Decode is a problem, for bodies of every content type, and that the
// cost of a body is proportional to its length. This matters because bodies are decoded before the client
// is authenticated.
func FuzzDecode(f *testing.F) {
	const (
		json  = "application/json"
		form  = "application/x-www-form-urlencoded"
		parts = "multipart/form-data; boundary=x"
	)
	f.Add(json, `{"name":"a","count":2}`)
	f.Add(json, `{"name":`+strings.Repeat("[", 9_000))
	f.Add(json, `{"name":"`+strings.Repeat(`\ud800`, 1<<13)+`"}`)
	f.Add(json, `{"tags":[`+strings.Repeat("1,", 1<<15)+`1]}`)
	f.Add(json, "{"+strings.Repeat(`"a":1,`, 1<<13)+`"b":1}`)
	f.Add(json, `{"count":1`+strings.Repeat("0", 1<<16)+"}")
	f.Add(json+strings.Repeat(";a=b", 1<<12), "{}")
	f.Add(form, "name=a")
	f.Add(form, strings.Repeat("&", 1<<16))
	f.Add(form, strings.Repeat("a=&", 1<<13))
	f.Add(form, strings.Repeat("%41", 1<<14))
	f.Add(parts, strings.Repeat("--x\r\n\r\n\r\n", 1<<12)+"--x--")
	f.Add(parts, "--x\r\n"+strings.Repeat("A: b\r\n", 1<<12)+"\r\n\r\n--x--")
	f.Add("multipart/form-data; boundary="+strings.Repeat("-", 1<<12), strings.Repeat("-", 1<<16))

	bound := fuzzcost.Bound{
		CPU:        5 * time.Millisecond,
		CPUPerByte: time.Microsecond,
		Heap:       256 << 10,
		PerByte:    256,
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		bound.Check(t, len(kind)+min(len(body), 1<<20), func() {
			if _, err := web.Decode[thing](post(kind, body)); err != nil && problem.First(err) == nil {
				t.Errorf("Decode(%q, %q) = %v, which is not a problem", kind, body, err)
			}
		})
	})
}

// FuzzBasic shows that no Authorization header is accepted by both Basic and Bearer, and that two
// headers are refused.
func FuzzBasic(f *testing.F) {
	for _, header := range []string{
		"Basic YTpi", "basic YTpi", "Basic YTo6Og==", "Basic ====", "Basic",
		"Bearer a", "Bearer a b", "Bearer \t",
		"Basic " + strings.Repeat("YTpi", 1<<13),
		"Bearer " + strings.Repeat(",", 1<<15),
		strings.Repeat(" ", 1<<15),
	} {
		f.Add(header)
	}

	f.Fuzz(func(t *testing.T, header string) {
		fuzzcost.Parser.Check(t, len(header), func() {
			r := &http.Request{Header: http.Header{"Authorization": {header}}}
			_, _, basic := web.Basic(r)
			token, bearer := web.Bearer(r)
			if basic && bearer {
				t.Errorf("%q is accepted as both Basic and Bearer", header)
			}
			if bearer && strings.ContainsAny(token, " ,\t") {
				t.Errorf("%q has the token %q, want one without spaces, tabs and commas", header, token)
			}

			r.Header["Authorization"] = []string{header, header}
			if _, _, ok := web.Basic(r); ok {
				t.Errorf("two headers %q are accepted", header)
			}
			if _, ok := web.Bearer(r); ok {
				t.Errorf("two headers %q are accepted", header)
			}
		})
	})
}

// FuzzCookies shows that a device is read only from a cookie whose name has the prefix __Host-, and that
// a flow mark always has the same length.
func FuzzCookies(f *testing.F) {
	for _, header := range []string{
		"selvage-flow=a",
		"__Host-selvage-flow=a; selvage-flow=b",
		`selvage-device="a b"`,
		"selvage-device=a; selvage-device=b",
		"selvage-device=" + strings.Repeat("a", 1<<15),
		strings.Repeat("selvage-device=a;", 1<<11),
		strings.Repeat("a=b; ", 1<<12),
		strings.Repeat(";", 1<<15),
	} {
		f.Add(header)
	}

	c := web.Cookies{PublicURL: &url.URL{Scheme: "https", Host: "id.example"}}
	f.Fuzz(func(t *testing.T, header string) {
		bound := fuzzcost.Parser
		bound.PerByte *= 4 // the cookies are parsed again whenever one of them is read
		bound.Check(t, len(header), func() {
			r := &http.Request{Header: http.Header{"Cookie": {header}}}
			if value := c.Device(r); value != "" && strings.Count(header, "__Host-selvage-device=") == 0 {
				t.Errorf("the cookies %q set the device %q, although none has the prefix", header, value)
			}
			if mark := c.FlowOf(r); mark != "" && len(mark) != len(rand.Text()) {
				t.Errorf("the cookies %q set the mark %q, which has the wrong length", header, mark)
			}
		})
	})
}
