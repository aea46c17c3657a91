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
	in, err := web.Decode[thing](post("application/json",
		`{"name":"a","count":2,"tags":["x"],"on":false,"other":{}}`))
	if err != nil || in.Name != "a" || in.Count != 2 || len(in.Tags) != 1 || in.On == nil || *in.On {
		t.Errorf("Decode = %+v, %v, want the values in the body", in, err)
	}

	in, err = web.Decode[thing](post("application/json", `{"name":1,"count":"2","tags":{},"on":"yes"}`))
	var params []string
	for _, p := range problem.All(err) {
		params = append(params, p.Param+": "+p.Message)
	}

	want := "name: name must be a string|count: count must be an integer|" +
		"tags: tags must be an array whose elements are each a string|on: on must be true or false"
	if got := strings.Join(params, "|"); got != want {
		t.Errorf("Decode = %+v with the problems %q, want %q", in, got, want)
	}

	form := url.Values{"name": {"a"}}.Encode()
	if in, err := web.Decode[thing](post("application/x-www-form-urlencoded", form)); err != nil || in.Name != "a" {
		t.Errorf("Decode of a form = %+v, %v, want the name a", in, err)
	}

	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	if err := errors.Join(m.WriteField("name", "a"), m.Close()); err != nil {
		t.Fatal(err)
	}
	if in, err := web.Decode[thing](post(m.FormDataContentType(), body.String())); err != nil || in.Name != "a" {
		t.Errorf("Decode of a multipart form = %+v, %v, want the name a", in, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name, kind, body string
		want             problem.Kind
	}{
		{"nothing", "application/json", "", problem.Malformed},
		{"an array", "application/json", "[]", problem.Malformed},
		{"truncated", "application/json", `{"name":`, problem.Malformed},
		{"something after the end", "application/json", `{} {}`, problem.Malformed},
		{"a duplicate member", "application/json", `{"name":"a","name":"b"}`, problem.Malformed},
		{"a byte order mark", "application/json", "\ufeff{}", problem.Malformed},
		{"not UTF-8", "application/json", "{\"name\":\"\xff\"}", problem.Malformed},
		{"NaN", "application/json", `{"count":NaN}`, problem.Malformed},
		{"deep", "application/json", `{"name":` + strings.Repeat("[", 100_000) + `}`, problem.Malformed},
		{"many members", "application/json", "{" + members(257) + "}", problem.Malformed},
		{"large", "application/json", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, problem.TooLarge},
		{"a large form", "application/x-www-form-urlencoded", "name=" + strings.Repeat("x", 1<<20), problem.TooLarge},
		{"text", "text/plain", "{}", problem.Unsupported},
		{"no content type", "", "{}", problem.Unsupported},
		{"an unknown content type", ";;;", "{}", problem.Unsupported},
		{"UTF-16", "application/json; charset=utf-16", "{}", problem.Unsupported},
		{"a duplicate field", "application/x-www-form-urlencoded", "name=a&name=b", problem.Malformed},
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
		t.Errorf("Decode of 256 members = %+v, %v, want the name a", in, err)
	}
}

// FuzzDecode decodes bodies of every content type, and shows that every error is a problem. The
// cost of a body must be proportional to its length, because bodies are decoded before the client
// is authenticated.
func FuzzDecode(f *testing.F) {
	const form, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	for _, seed := range [][2]string{
		{"application/json", `{"name":"a","count":2}`}, {form, "name=a"},
		{"application/json", `{"name":` + strings.Repeat("[", 9_000)},
		{"application/json", `{"name":"` + strings.Repeat(`\ud800`, 1<<13) + `"}`},
		{"application/json", `{"tags":[` + strings.Repeat("1,", 1<<15) + `1]}`},
		{"application/json", "{" + strings.Repeat(`"a":1,`, 1<<13) + `"b":1}`},
		{"application/json", `{"count":1` + strings.Repeat("0", 1<<16) + "}"},
		{form, strings.Repeat("&", 1<<16)}, {form, strings.Repeat("a=&", 1<<13)}, {form, strings.Repeat("%41", 1<<14)},
		{parts, strings.Repeat("--x\r\n\r\n\r\n", 1<<12) + "--x--"},
		{parts, "--x\r\n" + strings.Repeat("A: b\r\n", 1<<12) + "\r\n\r\n--x--"},
		{"multipart/form-data; boundary=" + strings.Repeat("-", 1<<12), strings.Repeat("-", 1<<16)},
		{"application/json" + strings.Repeat(";a=b", 1<<12), "{}"},
	} {
		f.Add(seed[0], seed[1])
	}

	bound := fuzzcost.Bound{CPU: 5 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 256 << 10, PerByte: 256}
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
		"Basic YTpi", "basic YTpi", "Basic YTo6Og==", "Basic ====", "Bearer a", "Bearer a b", "Bearer \t", "Basic",
		"Basic " + strings.Repeat("YTpi", 1<<13), "Bearer " + strings.Repeat(",", 1<<15), strings.Repeat(" ", 1<<15),
	} {
		f.Add(header)
	}

	f.Fuzz(func(t *testing.T, header string) {
		fuzzcost.Parser.Check(t, len(header), func() {
			r := &http.Request{Header: http.Header{"Authorization": {header}}}
			_, _, basic := web.Basic(r)
			token, bearer := web.Bearer(r)
			if basic && bearer || bearer && strings.ContainsAny(token, " ,\t") {
				t.Errorf("%q is parsed as Basic: %v, and as the token %q, want at most one, and a valid token",
					header, basic, token)
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

// FuzzCookies shows that a device is read only from the cookie whose name has the prefix, and that
// a flow mark always has the same length.
func FuzzCookies(f *testing.F) {
	for _, header := range []string{
		"selvage-flow=a", "__Host-selvage-flow=a; selvage-flow=b", `selvage-device="a b"`,
		"selvage-device=a; selvage-device=b",
		strings.Repeat("a=b; ", 1<<12), "selvage-device=" + strings.Repeat("a", 1<<15), strings.Repeat(";", 1<<15),
		strings.Repeat("selvage-device=a;", 1<<11),
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
